// Produces and consumes with the Node client ali-ons: an order and a name server. Prints what came of it.
'use strict';

const { Consumer, Message, Producer } = require('ali-ons');
const httpclient = require('urllib');

const PATIENCE = 60000;
const NO_PROGRESS_YET = 22; // this client calls it an error, and goes on
const nameSrv = process.argv[3];
const quiet = () => {};
const logger = { debug: quiet, info: quiet, warn: quiet, error: quiet };

function fail(problem) {
  console.log('problem', problem);
  process.exit(1);
}

async function produce() {
  const producer = new Producer({ httpclient, nameSrv, logger, producerGroup: 'node-producing' });
  producer.on('error', fail);
  await producer.ready();
  for (let i = 0; i < 20; i++) {
    const message = new Message('node', i % 2 ? 'odd' : 'even', `größe ${i}`);
    message.keys = [ `key-${i}` ];
    message.properties.number = `${i}`;
    const result = await producer.send(message);
    if (i === 0) {
      console.log('sent', result.sendStatus, result.messageQueue.topic, result.msgId.length);
    }
  }
  const large = new Message('node-large', 'x'.repeat(20000));
  console.log('large', (await producer.send(large)).sendStatus);
  const delayed = new Message('node-delayed', 'later');
  delayed.delayTimeLevel = 1;
  console.log('delayed', (await producer.send(delayed)).sendStatus);
  await producer.close();
}

// Consumes a topic until enough messages came; gives what the handler made of them.
function consume(topic, expression, count, handler, options = {}) {
  return new Promise(resolve => {
    const got = [];
    const consumer = new Consumer({
      httpclient, nameSrv, logger,
      consumerGroup: `group-of-${topic}`,
      consumeFromWhere: 'CONSUME_FROM_FIRST_OFFSET',
      rebalanceInterval: 500,
      pollNameServerInteval: 500,
      ...options,
    });
    consumer.on('error', problem => problem.code === NO_PROGRESS_YET || fail(problem));
    setTimeout(() => fail(`only ${got.length} of ${count}: ${got}`), PATIENCE).unref();
    consumer.subscribe(topic, expression, async message => {
      const result = handler(message, got);
      if (got.length === count) {
        setTimeout(() => consumer.close().then(() => resolve(got), fail), 200);
      }
      return result;
    });
  });
}

const text = (message, got) => {
  got.push(message.body.toString());
};

const orders = {
  produce,
  async push() {
    const got = await consume('node', '*', 20, text);
    console.log('push', got.length, new Set(got).size);
  },
  async large() {
    console.log('large', (await consume('node-large', '*', 1, text))[0].length);
  },
  async delayed() {
    console.log('delayed', await consume('node-delayed', '*', 1, text));
  },
  async tags() {
    const got = await consume('node', 'odd', 10, text, { consumerGroup: 'node-tags' });
    console.log('tags', got.length, got.every(each => Number(each.slice(6)) % 2 === 1));
  },
  async sql() {
    const filter = { expressionType: 'SQL92', subString: 'number >= 15' };
    const got = await consume('node', filter, 5, text, { consumerGroup: 'node-sql' });
    console.log('sql', got.sort().join(' '));
  },
  async retried() {
    const got = await consume('node-delayed', '*', 2, (message, all) => {
      all.push(`${message.reconsumeTimes} ${message.body}`);
      return message.reconsumeTimes === 0 ? Consumer.ACTION_RETRY : undefined;
    }, { consumerGroup: 'node-retried' });
    console.log('retried', got.join('; '));
  },
  async broadcast() {
    const got = await consume('node', '*', 20, text, { consumerGroup: 'node-broadcast', isBroadcast: true });
    console.log('broadcast', new Set(got).size);
  },
};

orders[process.argv[2]]().then(() => {
  console.log('end');
  process.exit(0);
}, fail);
