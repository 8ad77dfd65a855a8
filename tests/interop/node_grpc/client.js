// Apache's gRPC client for Node on a cluster: sends messages of every kind, receives and acknowledges
// them, and prints a line for each kind; the last line is "end".
//
//   node client.js ENDPOINT
const { Producer, SimpleConsumer } = require('rocketmq-client-nodejs');
const { TransactionResolution } = require('rocketmq-client-nodejs/proto/apache/rocketmq/v2/definition_pb');

const [endpoints] = process.argv.slice(2);
const PATIENCE = 30_000;
// The client logs to files below the home directory, unless it is given something else.
const silent = { debug() {}, info() {}, warn() {}, error() {}, close() {} };
const own = { endpoints, namespace: '', logger: silent, requestTimeout: PATIENCE };

async function received(consumerGroup, topic, count) {
  const subscriptions = new Map().set(topic, '*');
  const consumer = new SimpleConsumer({ ...own, consumerGroup, subscriptions, awaitDuration: 5000 });
  await consumer.startup();
  const bodies = [];
  for (const deadline = Date.now() + PATIENCE; bodies.length < count && Date.now() < deadline;) {
    for (const message of await consumer.receive(16, 20_000)) {
      await consumer.ack(message);
      bodies.push(message.body.toString());
    }
  }
  await consumer.shutdown();
  return bodies;
}

const report = (kind, words) => console.log(kind, words.join(', '));

async function main() {
  // With several topics, version 1.0.8 may wait for settings that have come already.
  const producer = new Producer(own);
  await producer.startup();
  const message = (topic, body, more = {}) => ({
    topic, tag: 't', keys: ['k'], body: Buffer.from(body), ...more,
  });

  for (let number = 0; number < 5; number++) {
    const { messageId } = await producer.send(message('o-normal', `normal ${number}`));
    if (!messageId) throw new Error('no receipt');
  }
  report('normal', (await received('o-group', 'o-normal', 5)).sort());

  for (let number = 0; number < 5; number++) {
    await producer.send(message('o-fifo', `${number}`, { messageGroup: 'customer-7' }));
  }
  report('fifo', await received('o-ordered', 'o-fifo', 5));

  const due = Date.now() + 2000;
  await producer.send(message('o-delay', 'late', { deliveryTimestamp: new Date(due) }));
  const late = await received('o-group', 'o-delay', 1);
  report('delay', [...late, Date.now() >= Math.floor(due / 1000) * 1000]);

  // The client asks this what became of a transaction that was neither committed nor rolled back.
  const checker = { check: async () => TransactionResolution.COMMIT };
  const transactional = new Producer({ ...own, topics: ['o-tx'], checker });
  await transactional.startup();
  for (const word of ['rollback', 'commit', 'orphan']) {
    const transaction = transactional.beginTransaction();
    await transactional.send(message('o-tx', word), transaction);
    if (word === 'commit') await transaction.commit();
    if (word === 'rollback') await transaction.rollback();
  }
  report('tx', (await received('o-group', 'o-tx', 2)).sort());
  await transactional.shutdown();
  await producer.shutdown();
  console.log('end');
}

main().then(() => process.exit(0), (error) => {
  console.log(error);
  process.exit(1);
});
