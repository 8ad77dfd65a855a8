import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Predicate;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.common.UtilAll;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Consumes in every way a Java push consumer can: name server, then the names of scenes. */
public class Consuming {
    static final long PATIENCE = 30_000;
    static String servers;
    static DefaultMQProducer producer;

    public static void main(String[] args) throws Exception {
        Awake.start();
        servers = args[0];
        int status = 1;
        try {
            producer = Patient.made(new DefaultMQProducer("for-consuming"));
            producer.setNamesrvAddr(servers);
            producer.setHeartbeatBrokerInterval(1000);
            producer.setPollNameServerInterval(500); // for every client here of the same instance
            producer.start();
            for (String scene : Arrays.asList(args).subList(1, args.length)) {
                long start = System.currentTimeMillis();
                Consuming.class.getDeclaredMethod(scene).invoke(null);
                System.err.println(scene + " took " + (System.currentTimeMillis() - start) + " ms");
            }
            producer.shutdown();
            System.out.println("end");
            status = 0;
        } catch (Throwable problem) {
            problem.printStackTrace(System.out);
        }
        System.exit(status);
    }

    static void concurrent() throws Exception {
        send("concurrent", 500);
        Seen seen = new Seen();
        DefaultMQPushConsumer consumer = consumer("concurrent", ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setConsumeMessageBatchMaxSize(16);
        consumer.subscribe("concurrent", "*");
        consumer.registerMessageListener(seen.all());
        consumer.start();
        seen.await(500);
        send("concurrent", 100);
        seen.await(600);
        System.out.println("concurrent " + seen);
        consumer.shutdown();
    }

    /** What was consumed stays consumed: the next member begins where the last one ended. */
    static void resumed() throws Exception {
        send("resumed", 40);
        for (int expected : new int[] {40, 10}) {
            Seen seen = new Seen();
            DefaultMQPushConsumer consumer = consumer("resumed", ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
            consumer.setAwaitTerminationMillisWhenShutdown(PATIENCE); // else what is seen may not be committed
            consumer.subscribe("resumed", "*");
            consumer.registerMessageListener(seen.all());
            consumer.start();
            seen.await(expected);
            consumer.shutdown();
            System.out.println("resumed " + seen);
            send("resumed", 10);
        }
    }

    static void tags() throws Exception {
        for (int i = 0; i < 40; i++) {
            producer.send(new Message("tags", "tag-" + i % 4, bytes("tagged " + i)));
        }
        producer.send(new Message("tags", bytes("without a tag")));
        Seen seen = new Seen();
        DefaultMQPushConsumer consumer = consumer("tags", ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe("tags", "tag-1 || tag-3");
        consumer.registerMessageListener(seen.all());
        consumer.start();
        seen.await(20);
        producer.send(new Message("tags", "tag-0", bytes("not this")));
        producer.send(new Message("tags", "tag-3", bytes("but this")));
        seen.await(21);
        System.out.println("tags " + seen + " " + seen.has("but this") + " " + seen.has("not this"));
        consumer.shutdown();
    }

    static void sql() throws Exception {
        for (int i = 0; i < 40; i++) {
            Message message = new Message("sql", i % 2 == 0 ? "even" : "odd", bytes("number " + i));
            message.putUserProperty("number", "" + i);
            message.putUserProperty("region", i % 3 == 0 ? "eu" : "us");
            producer.send(message);
        }
        Seen seen = new Seen();
        DefaultMQPushConsumer consumer = consumer("sql", ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe("sql", MessageSelector.bySql("region = 'eu' AND number >= 10 AND TAGS IN ('even')"));
        consumer.registerMessageListener(seen.all());
        consumer.start();
        seen.await(5);
        System.out.println("sql " + seen.sorted());
        consumer.shutdown();
        DefaultMQPushConsumer wrong = consumer("sql-wrong", ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        wrong.subscribe("sql", MessageSelector.bySql("region = = 'eu'"));
        wrong.registerMessageListener(seen.all());
        try {
            wrong.start();
            System.out.println("sql accepted nonsense");
        } catch (Exception refused) {
            System.out.println("sql refused " + refused.getMessage().contains("CODE: 23"));
        }
        wrong.shutdown();
    }

    static void orderly() throws Exception {
        for (int i = 0; i < 200; i++) {
            Message message = new Message("orderly", bytes(i % 7 + ":" + i / 7));
            producer.send(message, new SelectMessageQueueByHash(), "key " + i % 7);
        }
        Map<String, List<Integer>> steps = new ConcurrentHashMap<>();
        Map<String, Integer> tries = new ConcurrentHashMap<>();
        Seen seen = new Seen();
        DefaultMQPushConsumer consumer = consumer("orderly", ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe("orderly", "*");
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            for (MessageExt each : messages) {
                String text = new String(each.getBody(), StandardCharsets.UTF_8);
                if (text.endsWith(":5") && tries.merge(text, 1, Integer::sum) < 3) {
                    context.setSuspendCurrentQueueTimeMillis(20);
                    return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
                }
                String[] parts = text.split(":");
                steps.computeIfAbsent(parts[0], k -> new CopyOnWriteArrayList<>()).add(Integer.parseInt(parts[1]));
                seen.add(each);
            }
            return ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();
        seen.await(200);
        int inOrder = 0;
        for (List<Integer> each : steps.values()) {
            List<Integer> sorted = new ArrayList<>(each);
            sorted.sort(null);
            inOrder += sorted.equals(each) ? 1 : 0;
        }
        System.out.println("orderly " + seen + " keys in order " + inOrder + " tries " + new TreeMap<>(tries).values());
        consumer.shutdown();
    }

    static void orderlyDeadLetter() throws Exception {
        producer.send(new Message("orderly-dead", bytes("never")));
        Seen seen = new Seen();
        DefaultMQPushConsumer consumer = consumer("orderly-dead", ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe("orderly-dead", "*");
        consumer.setMaxReconsumeTimes(2);
        consumer.setSuspendCurrentQueueTimeMillis(50);
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            messages.forEach(seen::add);
            return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
        });
        consumer.start();
        seen.await(3);
        System.out.println("orderly dead tries " + seen.messages.size() + " " + dead("orderly-dead"));
        consumer.shutdown();
    }

    static void broadcasting() throws Exception {
        send("broadcasting", 30);
        List<DefaultMQPushConsumer> consumers = new ArrayList<>();
        List<Seen> all = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            Seen seen = new Seen();
            DefaultMQPushConsumer consumer = consumer("broadcasting", ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
            consumer.setInstanceName("hearer-" + i);
            Compatible.broadcast(consumer);
            consumer.subscribe("broadcasting", "*");
            consumer.registerMessageListener(seen.all());
            consumer.start();
            consumers.add(consumer);
            all.add(seen);
        }
        for (Seen each : all) {
            each.await(30);
        }
        System.out.println("broadcasting " + all);
        consumers.forEach(DefaultMQPushConsumer::shutdown);
    }

    static void retried() throws Exception {
        producer.send(new Message("retried", "t", "key", bytes("at the third time")));
        Seen seen = new Seen();
        DefaultMQPushConsumer consumer = consumer("retried", ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe("retried", "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(seen::add);
            context.setDelayLevelWhenNextConsume(1);
            boolean again = messages.get(0).getReconsumeTimes() < 2;
            return again ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        seen.await(3);
        for (MessageExt each : seen.messages) {
            System.out.println("retried " + each.getTopic() + " " + each.getReconsumeTimes() + " " + each.getTags()
                + " " + each.getKeys() + " " + each.getMsgId().equals(seen.messages.get(0).getMsgId()));
        }
        consumer.shutdown();
    }

    static void deadLetter() throws Exception {
        producer.send(new Message("dead", bytes("nobody takes me")));
        Seen seen = new Seen();
        DefaultMQPushConsumer consumer = consumer("dead", ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe("dead", "*");
        consumer.setMaxReconsumeTimes(2);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(seen::add);
            throw new IllegalStateException("as in a bad listener");
        });
        consumer.start();
        seen.await(3);
        System.out.println("dead tries " + seen.messages.size() + " " + dead("dead"));
        consumer.shutdown();
    }

    static String dead(String group) throws Exception {
        awaitTopic("%DLQ%" + group);
        Seen seen = new Seen();
        DefaultMQPushConsumer consumer = consumer("undertaker-" + group, ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setInstanceName("undertaker-" + group);
        consumer.subscribe("%DLQ%" + group, "*");
        consumer.registerMessageListener(seen.all());
        consumer.start();
        seen.await(1);
        consumer.shutdown();
        MessageExt found = seen.messages.get(0);
        return found.getTopic() + " " + found.getReconsumeTimes() + " " + text(found);
    }

    static void partly() throws Exception {
        for (int i = 0; i < 4; i++) {
            producer.send(new Message("partly", bytes("part " + i)), (queues, message, arg) -> queues.get(0), null);
        }
        Seen seen = new Seen();
        DefaultMQPushConsumer consumer = consumer("partly", ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe("partly", "*");
        consumer.setConsumeMessageBatchMaxSize(4);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(seen::add);
            context.setDelayLevelWhenNextConsume(1);
            if (messages.size() == 4) {
                context.setAckIndex(1);
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        seen.await(6);
        System.out.println("partly " + seen.sorted());
        consumer.shutdown();
    }

    /** As with a Java broker: a queue whose first message is still there is read from it. */
    static void places() throws Exception {
        send("places", 20);
        for (ConsumeFromWhere where : new ConsumeFromWhere[] {
            ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
            ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
            ConsumeFromWhere.CONSUME_FROM_TIMESTAMP,
        }) {
            Seen seen = new Seen();
            DefaultMQPushConsumer consumer = consumer("places-" + where, where);
            consumer.setConsumeTimestamp(UtilAll.timeMillisToHumanString3(System.currentTimeMillis() + 3600_000));
            consumer.subscribe("places", "*");
            consumer.registerMessageListener(seen.all());
            consumer.start();
            seen.await(20);
            System.out.println(where + " " + seen);
            consumer.shutdown();
        }
    }

    static void delayed() throws Exception {
        Seen seen = new Seen();
        producer.send(new Message("delayed-to-me", bytes("now")));
        DefaultMQPushConsumer consumer = consumer("delayed", ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe("delayed-to-me", "*");
        consumer.registerMessageListener(seen.all());
        consumer.start();
        seen.await(1);
        for (int level = 1; level <= 3; level++) {
            Message message = new Message("delayed-to-me", "late", "key", bytes("level " + level));
            message.setDelayTimeLevel(level);
            producer.send(message);
        }
        seen.await(4);
        for (MessageExt each : seen.messages.subList(1, 4)) {
            long late = each.getStoreTimestamp() - each.getBornTimestamp();
            System.out.println("delayed " + text(each) + " " + each.getTags() + " " + late / 1000 + " s "
                + each.getDelayTimeLevel());
        }
        consumer.shutdown();
    }

    static void bodies() throws Exception {
        byte[] big = new byte[3 << 20];
        Arrays.fill(big, (byte) 'x');
        producer.send(new Message("bodies", big));
        DefaultMQProducer plain = Patient.made(new DefaultMQProducer("plain"));
        plain.setNamesrvAddr(servers);
        plain.setPollNameServerInterval(1000);
        plain.setHeartbeatBrokerInterval(1000);
        plain.setInstanceName("plain");
        plain.setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE);
        plain.start();
        plain.send(new Message("bodies", big));
        plain.shutdown();
        Seen seen = new Seen();
        DefaultMQPushConsumer consumer = consumer("bodies", ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe("bodies", "*");
        consumer.registerMessageListener(seen.all());
        consumer.start();
        seen.await(2);
        for (MessageExt each : seen.messages) {
            System.out.println("bodies whole " + Arrays.equals(each.getBody(), big));
        }
        consumer.shutdown();
    }

    /** The topic does not exist yet when its consumer starts. */
    static void early() throws Exception {
        Seen seen = new Seen();
        DefaultMQPushConsumer consumer = consumer("early", ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET);
        consumer.subscribe("early", "*");
        consumer.registerMessageListener(seen.all());
        consumer.start();
        send("early", 10);
        seen.await(10);
        System.out.println("early " + seen);
        consumer.shutdown();
    }

    @SuppressWarnings("deprecation")
    static void namespace() throws Exception {
        DefaultMQProducer tenant = Patient.made(new DefaultMQProducer("tenant"));
        tenant.setNamesrvAddr(servers);
        tenant.setPollNameServerInterval(1000);
        tenant.setHeartbeatBrokerInterval(1000);
        tenant.setInstanceName("tenant");
        tenant.setNamespace("flat");
        tenant.start();
        tenant.send(new Message("rooms", bytes("a lodger")));
        tenant.shutdown();
        Seen seen = new Seen();
        DefaultMQPushConsumer consumer = consumer("lodgers", ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setInstanceName("lodgers");
        consumer.setNamespace("flat");
        consumer.subscribe("rooms", "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(seen::add);
            context.setDelayLevelWhenNextConsume(1);
            boolean again = messages.get(0).getReconsumeTimes() == 0;
            return again ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        seen.await(2);
        for (MessageExt each : seen.messages) {
            System.out.println("namespace " + each.getTopic() + " " + each.getReconsumeTimes());
        }
        consumer.shutdown();
    }

    /** Client-made traces of a message's way; needs the broker's trace topic. */
    static void traced() throws Exception {
        DefaultMQProducer tracing = Patient.made(new DefaultMQProducer("tracing", true, null));
        tracing.setNamesrvAddr(servers);
        tracing.setPollNameServerInterval(1000);
        tracing.setHeartbeatBrokerInterval(1000);
        tracing.setInstanceName("tracing");
        tracing.start();
        tracing.send(new Message("traced", bytes("watched")));
        DefaultMQPushConsumer consumer = Patient.made(new DefaultMQPushConsumer("traced", true, null));
        consumer.setNamesrvAddr(servers);
        consumer.setPollNameServerInterval(1000);
        consumer.setHeartbeatBrokerInterval(1000);
        consumer.setInstanceName("traced");
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        Seen seen = new Seen();
        consumer.subscribe("traced", "*");
        consumer.registerMessageListener(seen.all());
        consumer.start();
        seen.await(1);
        Seen traces = new Seen();
        DefaultMQPushConsumer watcher = consumer("watcher", ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        watcher.subscribe("RMQ_SYS_TRACE_TOPIC", "*");
        watcher.registerMessageListener(traces.all());
        watcher.start();
        long deadline = System.currentTimeMillis() + PATIENCE;
        Set<String> kinds = new TreeSet<>();
        while (kinds.size() < 3 && System.currentTimeMillis() < deadline) {
            for (MessageExt each : traces.messages) {
                for (String record : text(each).split("\u0002")) {
                    kinds.add(record.split("\u0001")[0]);
                }
            }
            Thread.sleep(20);
        }
        System.out.println("traced " + (kinds.contains("Pub") ? "Pub " : "") + (kinds.contains("SubBefore") ? "SubBefore " : "")
            + (kinds.contains("SubAfter") ? "SubAfter" : ""));
        watcher.shutdown();
        consumer.shutdown();
        tracing.shutdown();
    }

    static DefaultMQPushConsumer consumer(String group, ConsumeFromWhere where) {
        DefaultMQPushConsumer consumer = Patient.made(new DefaultMQPushConsumer("group-" + group));
        if (group.equals("dead") || group.equals("orderly-dead")) {
            consumer.setConsumerGroup(group);
        }
        consumer.setNamesrvAddr(servers);
        consumer.setHeartbeatBrokerInterval(1000);
        consumer.setPollNameServerInterval(500); // retry topics are found as soon as they are there
        consumer.setConsumeFromWhere(where);
        return consumer;
    }

    static void send(String topic, int count) throws Exception {
        for (int i = 0; i < count; i++) {
            producer.send(new Message(topic, bytes(topic + " " + i)));
        }
    }

    static void awaitTopic(String topic) throws Exception {
        long deadline = System.currentTimeMillis() + PATIENCE;
        while (true) {
            try {
                producer.fetchPublishMessageQueues(topic);
                return;
            } catch (Exception missing) {
                if (System.currentTimeMillis() > deadline) {
                    throw missing;
                }
                Thread.sleep(20);
            }
        }
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(MessageExt message) {
        return new String(message.getBody(), StandardCharsets.UTF_8);
    }

    /** Messages in the order in which a listener met them. */
    static class Seen {
        final List<MessageExt> messages = new CopyOnWriteArrayList<>();

        void add(MessageExt message) {
            messages.add(message);
        }

        MessageListenerConcurrently all() {
            return (batch, context) -> {
                messages.addAll(batch);
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            };
        }

        void await(int count) throws Exception {
            long deadline = System.currentTimeMillis() + PATIENCE;
            while (messages.size() < count && System.currentTimeMillis() < deadline) {
                Thread.sleep(10);
            }
        }

        boolean has(String text) {
            return messages.stream().map(Consuming::text).anyMatch(Predicate.isEqual(text));
        }

        List<String> sorted() {
            List<String> texts = new ArrayList<>();
            messages.forEach(each -> texts.add(text(each)));
            texts.sort(null);
            return texts;
        }

        @Override
        public String toString() {
            long places = messages.stream().map(each -> each.getQueueId() + "@" + each.getQueueOffset()).distinct().count();
            return messages.size() + " messages " + places + " places";
        }
    }
}
