import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.exception.RequestTimeoutException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.producer.TransactionSendResult;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Transactions, timers, requests and replies: name server, then the names of scenes. */
public class Special {
    static final long PATIENCE = 60_000;
    static String servers;
    static final List<MessageExt> seen = new CopyOnWriteArrayList<>();
    static final List<Long> times = new CopyOnWriteArrayList<>();

    public static void main(String[] args) throws Exception {
        Awake.start();
        servers = args[0];
        int status = 1;
        try {
            for (String scene : Arrays.asList(args).subList(1, args.length)) {
                long start = System.currentTimeMillis();
                seen.clear();
                times.clear();
                Special.class.getDeclaredMethod(scene).invoke(null);
                System.err.println(scene + " took " + (System.currentTimeMillis() - start) + " ms");
            }
            System.out.println("end");
            status = 0;
        } catch (Throwable problem) {
            problem.printStackTrace(System.out);
        }
        System.exit(status);
    }

    /** Four fates of a transaction: committed, rolled back, and both after being asked. */
    static void transactions() throws Exception {
        Map<String, Integer> checks = new ConcurrentHashMap<>();
        Map<String, String> asked = new ConcurrentHashMap<>();
        TransactionMQProducer producer = Patient.made(new TransactionMQProducer("tx-shop"));
        producer.setNamesrvAddr(servers);
        producer.setPollNameServerInterval(1000);
        producer.setHeartbeatBrokerInterval(1000);
        producer.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
                String fate = body(message);
                return fate.startsWith("commit") ? LocalTransactionState.COMMIT_MESSAGE
                    : fate.startsWith("roll back") ? LocalTransactionState.ROLLBACK_MESSAGE
                    : LocalTransactionState.UNKNOW;
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                String fate = body(message);
                int times = checks.merge(fate, 1, Integer::sum);
                asked.put(fate, message.getTopic() + " " + message.getQueueId() + " "
                    + message.getProperty("TRANSACTION_CHECK_TIMES") + " " + message.getTags() + " "
                    + (message.getTransactionId() != null) + " "
                    + message.getProperty("UNIQ_KEY").equals(message.getTransactionId()));
                return times < 2 ? LocalTransactionState.UNKNOW
                    : fate.endsWith("commit") ? LocalTransactionState.COMMIT_MESSAGE
                    : LocalTransactionState.ROLLBACK_MESSAGE;
            }
        });
        producer.setHeartbeatBrokerInterval(500);
        producer.start();
        Compatible.createTopic(producer, "transactions", 1);
        DefaultMQPushConsumer consumer = consume("transactions");
        for (String fate : new String[] {"commit", "roll back", "ask, then commit", "ask, then roll back"}) {
            Message message = new Message("transactions", "t", "k", fate.getBytes(StandardCharsets.UTF_8));
            TransactionSendResult result = producer.sendMessageInTransaction(message, null);
            System.out.println("sent " + result.getSendStatus() + " " + result.getLocalTransactionState() + " "
                + result.getMessageQueue().getQueueId() + " " + (result.getTransactionId() != null));
        }
        until(() -> seen.size() == 2 && checks.getOrDefault("ask, then roll back", 0) == 2);
        Thread.sleep(2000);
        for (MessageExt message : seen) {
            System.out.println("seen " + body(message) + " " + message.getTopic() + "/" + message.getQueueId()
                + "@" + message.getQueueOffset() + " flag " + message.getSysFlag() + " " + names(message));
        }
        System.out.println("asked " + new TreeMap<>(asked) + " " + new TreeMap<>(checks));
        consumer.shutdown();
        producer.shutdown();
    }

    /** A transaction nobody knows about is given up. */
    static void givenUp() throws Exception {
        List<String> asked = new CopyOnWriteArrayList<>();
        TransactionMQProducer producer = Patient.made(new TransactionMQProducer("tx-lost"));
        producer.setNamesrvAddr(servers);
        producer.setPollNameServerInterval(1000);
        producer.setHeartbeatBrokerInterval(1000);
        producer.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
                return LocalTransactionState.UNKNOW;
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                asked.add(message.getProperty("TRANSACTION_CHECK_TIMES"));
                return LocalTransactionState.UNKNOW;
            }
        });
        producer.setHeartbeatBrokerInterval(500);
        producer.start();
        Compatible.createTopic(producer, "lost", 1);
        long before = givenUp(producer);
        producer.sendMessageInTransaction(new Message("lost", "nobody knows".getBytes()), null);
        until(() -> givenUp(producer) == before + 1);
        System.out.println("given up " + (givenUp(producer) - before));
        System.out.println("asked " + asked);
        producer.shutdown();
    }

    static long givenUp(DefaultMQProducer producer) {
        try {
            String broker = producer.fetchPublishMessageQueues("lost").get(0).getBrokerName();
            return producer.maxOffset(new MessageQueue("TRANS_CHECK_MAX_TIME_TOPIC", broker, 0));
        } catch (Exception none) {
            return 0;
        }
    }

    /** Delays by seconds, by milliseconds and to a moment; one is taken back. */
    static void timers() throws Exception {
        DefaultMQProducer producer = producer("timer-shop");
        Compatible.createTopic(producer, "timers", 1);
        DefaultMQPushConsumer consumer = consume("timers");
        long start = System.currentTimeMillis();
        SendResult gone = send(producer, "taken back", "TIMER_DELAY_MS", "4000");
        send(producer, "seconds", "TIMER_DELAY_SEC", "3");
        send(producer, "milliseconds", "TIMER_DELAY_MS", "2000");
        send(producer, "moment", "TIMER_DELIVER_MS", String.valueOf(start + 5000));
        send(producer, "past", "TIMER_DELIVER_MS", String.valueOf(start - 5000));
        try {
            send(producer, "far", "TIMER_DELAY_SEC", String.valueOf(3 * 24 * 3600 + 60));
        } catch (MQBrokerException refused) {
            System.out.println("far " + refused.getResponseCode());
        }
        recall(producer, gone);
        until(() -> seen.size() >= 4);
        Thread.sleep(1500);
        for (int at = 0; at < seen.size(); at++) {
            MessageExt message = seen.get(at);
            long due = "seconds".equals(body(message)) ? 3000 : "milliseconds".equals(body(message)) ? 2000
                : "moment".equals(body(message)) ? 5000 : 0;
            long late = times.get(at) - start - due;
            System.out.println("seen " + body(message) + " " + (late >= 0 && late < 2500 ? "in time" : late)
                + " " + message.getTopic() + "/" + message.getQueueId() + " flag " + message.getSysFlag() + " "
                + names(message));
        }
        consumer.shutdown();
        producer.shutdown();
    }

    static void recall(DefaultMQProducer producer, SendResult result) throws Exception {
        try {
            Object handle = SendResult.class.getMethod("getRecallHandle").invoke(result);
            Object recalled = DefaultMQProducer.class.getMethod("recallMessage", String.class, String.class)
                .invoke(producer, "timers", handle);
            System.out.println("recalled " + recalled.equals(result.getMsgId()));
        } catch (NoSuchMethodException older) {
            System.out.println("cannot recall");
        } catch (java.lang.reflect.InvocationTargetException refused) {
            System.out.println("not recalled " + refused.getCause().getMessage());
        }
    }

    static SendResult send(DefaultMQProducer producer, String text, String name, String value) throws Exception {
        Message message = new Message("timers", "t", "k", text.getBytes(StandardCharsets.UTF_8));
        MessageAccessor.putProperty(message, name, value);
        return producer.send(message);
    }

    /** Two requests answered, one nobody answers, and a reply nobody waits for. */
    static void requests() throws Exception {
        DefaultMQProducer producer = producer("asking");
        DefaultMQProducer replier = producer("replying");
        Compatible.createTopic(producer, "requests", 1);
        DefaultMQPushConsumer consumer = Patient.made(new DefaultMQPushConsumer("answering"));
        consumer.setNamesrvAddr(servers);
        consumer.setPollNameServerInterval(1000);
        consumer.setHeartbeatBrokerInterval(1000);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe("requests", "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                seen.add(message);
                if (!body(message).startsWith("nobody")) {
                    try {
                        Message reply = MessageUtil.createReplyMessage(message,
                            ("answer to " + body(message)).getBytes(StandardCharsets.UTF_8));
                        SendResult result = replier.send(reply, 5000);
                        System.out.println("replied " + result.getSendStatus());
                    } catch (Exception problem) {
                        System.out.println("not replied " + problem);
                    }
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        Message answer = producer.request(new Message("requests", "one".getBytes()), PATIENCE);
        System.out.println("got " + body(answer) + " " + answer.getTopic().endsWith("_REPLY_TOPIC") + " "
            + new TreeMap<>(answer.getProperties()).keySet());
        System.out.println("got " + body(producer.request(new Message("requests", "two".getBytes()), PATIENCE)));
        try {
            producer.request(new Message("requests", "nobody answers".getBytes()), 1500);
        } catch (RequestTimeoutException none) {
            System.out.println("no answer");
        }
        MessageExt orphan = seen.get(0);
        for (String client : new String[] {"10.0.0.1@nobody", null}) {
            Message reply = MessageUtil.createReplyMessage(orphan, "too late".getBytes());
            if (client == null) {
                MessageAccessor.clearProperty(reply, "REPLY_TO_CLIENT");
            } else {
                MessageAccessor.putProperty(reply, "REPLY_TO_CLIENT", client);
            }
            try {
                System.out.println("replied " + replier.send(reply).getSendStatus());
            } catch (MQBrokerException refused) {
                System.out.println("refused " + refused.getResponseCode() + " " + refused.getErrorMessage());
            } catch (MQClientException refused) { // 5.x tries again first
                MQBrokerException cause = (MQBrokerException) refused.getCause();
                System.out.println("refused " + cause.getResponseCode() + " " + cause.getErrorMessage());
            }
        }
        consumer.shutdown();
        producer.shutdown();
        replier.shutdown();
    }

    static DefaultMQProducer producer(String group) throws Exception {
        DefaultMQProducer producer = Patient.made(new DefaultMQProducer(group));
        producer.setNamesrvAddr(servers);
        producer.setHeartbeatBrokerInterval(1000);
        producer.setPollNameServerInterval(500);
        producer.setInstanceName(group);
        producer.start();
        return producer;
    }

    static DefaultMQPushConsumer consume(String topic) throws Exception {
        DefaultMQPushConsumer consumer = Patient.made(new DefaultMQPushConsumer("reads-" + topic));
        consumer.setNamesrvAddr(servers);
        consumer.setPollNameServerInterval(1000);
        consumer.setHeartbeatBrokerInterval(1000);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "t");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            times.add(System.currentTimeMillis());
            seen.addAll(messages);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        return consumer;
    }

    static List<String> names(MessageExt message) {
        List<String> names = new ArrayList<>(new TreeMap<>(message.getProperties()).keySet());
        names.removeAll(Arrays.asList("MIN_OFFSET", "MAX_OFFSET", "CONSUME_START_TIME", "INSTANCE_ID"));
        return names;
    }

    static String body(Message message) {
        return new String(message.getBody(), StandardCharsets.UTF_8);
    }

    interface Condition {
        boolean holds();
    }

    static void until(Condition condition) throws Exception {
        long deadline = System.currentTimeMillis() + PATIENCE;
        while (!condition.holds() && System.currentTimeMillis() < deadline) {
            Thread.sleep(20);
        }
    }
}
