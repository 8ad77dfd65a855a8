import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** What Java's clients do with a broker: an order, a name server, a topic, and what the order needs. */
@SuppressWarnings("deprecation")
public class BrokerWork {
    public static void main(String[] args) throws Exception {
        Awake.start();
        switch (args[0]) {
            case "produce": produce(args[1], args[2]); break;
            case "find": find(args[1], args[2], args[3], args[4]); break;
            case "push": push(args[1], args[2], args[3], args[4], Integer.parseInt(args[5])); break;
            case "orderly": orderly(args[1], args[2], args[3], Integer.parseInt(args[4])); break;
            case "lite": lite(args[1], args[2], args[3], args[4], Integer.parseInt(args[5])); break;
            case "load": load(args[1], args[2], Integer.parseInt(args[3])); break;
            default: throw new IllegalArgumentException(args[0]);
        }
        System.out.println("end");
        System.exit(0);
    }

    static DefaultMQProducer producer(String namesrv) throws Exception {
        DefaultMQProducer producer = Patient.made(new DefaultMQProducer("java-producers"));
        producer.setNamesrvAddr(namesrv);
        producer.setPollNameServerInterval(1000);
        producer.setHeartbeatBrokerInterval(1000);
        producer.setSendMsgTimeout(10000);
        producer.start();
        return producer;
    }

    static Message message(String topic, String body) {
        String tag = body.hashCode() % 2 == 0 ? "even" : "odd";
        Message message = new Message(topic, tag, "key-" + body, body.getBytes());
        message.putUserProperty("n", String.valueOf(Math.abs(body.hashCode() % 10)));
        return message;
    }

    static void show(String how, String body, SendResult result) {
        System.out.println(how + " " + body + " " + result.getSendStatus() + " " + result.getMsgId()
            + " " + result.getOffsetMsgId() + " " + result.getQueueOffset() + " " + result.getRegionId()
            + " " + result.isTraceOn());
    }

    static void produce(String namesrv, String topic) throws Exception {
        DefaultMQProducer producer = producer(namesrv);
        for (int i = 0; i < 10; i++) {
            show("sync", "sync" + i, producer.send(message(topic, "sync" + i)));
        }
        CountDownLatch missing = new CountDownLatch(10);
        for (int i = 0; i < 10; i++) {
            String body = "async" + i;
            producer.send(message(topic, body), new SendCallback() {
                public void onSuccess(SendResult result) {
                    show("async", body, result);
                    missing.countDown();
                }
                public void onException(Throwable error) {
                    error.printStackTrace(System.out);
                }
            });
        }
        missing.await(30, TimeUnit.SECONDS);
        for (int i = 0; i < 10; i++) {
            producer.sendOneway(message(topic, "oneway" + i));
        }
        List<Message> batch = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            batch.add(message(topic, "batch" + i));
        }
        show("batch", "batch", producer.send(batch));
        for (int i = 0; i < 10; i++) {
            show("chosen", "chosen" + i, producer.send(message(topic, "chosen" + i),
                (queues, each, arg) -> queues.get((Integer) arg % queues.size()), 1));
        }
        byte[] large = new byte[100000];
        Arrays.fill(large, (byte) 'z');
        show("large", "large", producer.send(new Message(topic, "even", "key-large", large)));
        producer.shutdown();
    }

    static void load(String namesrv, String topic, int count) throws Exception {
        DefaultMQProducer producer = producer(namesrv);
        CountDownLatch missing = new CountDownLatch(count);
        Set<String> failed = ConcurrentHashMap.newKeySet();
        Semaphore underWay = new Semaphore(256);
        long start = System.currentTimeMillis();
        for (int i = 0; i < count; i++) {
            underWay.acquire();
            producer.send(message(topic, "load" + i), new SendCallback() {
                public void onSuccess(SendResult result) {
                    underWay.release();
                    missing.countDown();
                }
                public void onException(Throwable error) {
                    underWay.release();
                    failed.add(error.toString().replace('\n', ' '));
                    missing.countDown();
                }
            });
        }
        missing.await(60, TimeUnit.SECONDS);
        long took = System.currentTimeMillis() - start;
        System.out.println("loaded " + (count - missing.getCount()) + " failed " + failed + " ms " + took);
        producer.shutdown();
    }

    static void find(String namesrv, String topic, String id, String key) throws Exception {
        DefaultMQProducer producer = producer(namesrv);
        MessageExt byId = producer.viewMessage(topic, id);
        System.out.println("id " + new String(byId.getBody()) + " " + byId.getKeys() + " " + byId.getBornHostString());
        for (MessageExt each : producer.queryMessage(topic, key, 10, 0, System.currentTimeMillis() + 10000).getMessageList()) {
            System.out.println("key " + new String(each.getBody()));
        }
        producer.shutdown();
    }

    static void consumed(MessageExt each) {
        String body = each.getBody().length > 1000 ? "large" : new String(each.getBody());
        System.out.println("got " + body + " " + each.getTags() + " " + each.getKeys() + " " + each.getMsgId()
            + " " + each.getQueueId() + " " + each.getQueueOffset() + " " + each.getBody().length
            + " " + each.getStoreSize() + " " + each.getSysFlag());
    }

    static DefaultMQPushConsumer consumer(String namesrv, String group) {
        DefaultMQPushConsumer consumer = Patient.made(new DefaultMQPushConsumer(group));
        consumer.setNamesrvAddr(namesrv);
        consumer.setPollNameServerInterval(1000);
        consumer.setHeartbeatBrokerInterval(1000);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        return consumer;
    }

    static void push(String namesrv, String topic, String group, String expression, int count) throws Exception {
        DefaultMQPushConsumer consumer = consumer(namesrv, group);
        if (expression.startsWith("sql:")) {
            consumer.subscribe(topic, MessageSelector.bySql(expression.substring(4)));
        } else {
            consumer.subscribe(topic, expression);
        }
        CountDownLatch missing = new CountDownLatch(count);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(each -> {
                consumed(each);
                missing.countDown();
            });
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        System.out.println("started");
        missing.await(60, TimeUnit.SECONDS);
        Thread.sleep(500);
        consumer.shutdown();
    }

    static void orderly(String namesrv, String topic, String group, int count) throws Exception {
        DefaultMQPushConsumer consumer = consumer(namesrv, group);
        consumer.subscribe(topic, "*");
        CountDownLatch missing = new CountDownLatch(count);
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            messages.forEach(each -> {
                consumed(each);
                missing.countDown();
            });
            return ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();
        missing.await(60, TimeUnit.SECONDS);
        Thread.sleep(500);
        consumer.shutdown();
    }

    static void lite(String namesrv, String topic, String group, String expression, int count) throws Exception {
        DefaultLitePullConsumer consumer = Patient.made(new DefaultLitePullConsumer(group));
        consumer.setNamesrvAddr(namesrv);
        consumer.setPollNameServerInterval(1000);
        consumer.setHeartbeatBrokerInterval(1000);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, expression);
        consumer.start();
        int got = 0;
        long end = System.currentTimeMillis() + 60000;
        while (got < count && System.currentTimeMillis() < end) {
            for (MessageExt each : consumer.poll(1000)) {
                consumed(each);
                got++;
            }
        }
        consumer.commitSync();
        consumer.shutdown();
    }
}
