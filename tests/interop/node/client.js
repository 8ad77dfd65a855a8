// Produces and consumes with the Node client ali-ons; prints "ok …" lines, exits 1 on a failure.
//
// npm install ali-ons urllib@2
const { Consumer, Producer, Message } = require('ali-ons');
const httpclient = require('urllib');
(async () => {
  const nameSrv = process.argv[2];
  const logger = { info() {}, warn: console.log, error: console.log, debug() {} };
  const producer = new Producer({ httpclient, nameSrv, producerGroup: 'nodep', logger });
  producer.on('error', e => console.log('perr', e.message));
  await producer.ready();
  const ids = new Set();
  for (let i = 0; i < 20; i++) {
    const m = new Message('nodetopic', i % 2 ? 'b' : 'a', 'body' + i); m.keys = ['k' + i];
    const r = await producer.send(m);
    if (i === 0) console.log(JSON.stringify(r));
  }
  console.log('ok sent 20');
  const consumer = new Consumer({ httpclient, nameSrv, consumerGroup: 'nodec', logger, consumeFromWhere: 'CONSUME_FROM_FIRST_OFFSET' });
  consumer.on('error', e => console.log('cerr', e.message));
  const seen = new Set();
  consumer.subscribe('nodetopic', '*', async msg => { seen.add(msg.body.toString()); if (seen.size === 20) { console.log('ok consumed', seen.size); await consumer.close(); await producer.close(); process.exit(0); } });
  setTimeout(() => { console.log('FAIL consumed', seen.size); process.exit(1); }, 45000);
})().catch(e => { console.log('FAIL', e); process.exit(1); });
