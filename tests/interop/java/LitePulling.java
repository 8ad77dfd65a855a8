import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Reads with lite pull consumers, subscribed and assigned: name server. */
public class LitePulling {
    static final long PATIENCE = 30_000;
    /** Names of this run: another one finds nothing of it. */
    static final String LITE = "lite-" + System.currentTimeMillis();
    static final String ASSIGNED = "assigned-" + System.currentTimeMillis();
    static String servers;
    static DefaultMQProducer producer;

    public static void main(String[] args) throws Exception {
        Awake.start();
        servers = args[0];
        int status = 1;
        try {
            producer = Patient.made(new DefaultMQProducer("for-lite-pulling"));
            producer.setNamesrvAddr(servers);
            producer.setPollNameServerInterval(1000);
            producer.setHeartbeatBrokerInterval(1000);
            producer.start();
            subscribed();
            assigned();
            producer.shutdown();
            System.out.println("end");
            status = 0;
        } catch (Throwable problem) {
            problem.printStackTrace(System.out);
        }
        System.exit(status);
    }

    /** Committed by hand, gone on by the next member. */
    static void subscribed() throws Exception {
        send(LITE, 40);
        for (int expected : new int[] {20, 5}) {
            DefaultLitePullConsumer consumer = consumer(LITE);
            consumer.setAutoCommit(false);
            consumer.subscribe(LITE, "odd");
            consumer.start();
            System.out.println("subscribed " + poll(consumer, expected).size());
            consumer.commitSync();
            consumer.shutdown();
            send(LITE, 10);
        }
    }

    static void assigned() throws Exception {
        Compatible.createTopic(producer, ASSIGNED, 2);
        DefaultLitePullConsumer consumer = consumer(ASSIGNED);
        consumer.start();
        List<MessageQueue> queues = new ArrayList<>(consumer.fetchMessageQueues(ASSIGNED));
        Collections.sort(queues);
        MessageQueue first = queues.get(0);
        long middle = 0;
        for (int i = 0; i < 30; i++) {
            producer.send(new Message(ASSIGNED, bytes("message " + i)), first);
            if (i == 19) {
                Thread.sleep(20);
                middle = System.currentTimeMillis();
                Thread.sleep(20);
            }
        }
        consumer.assign(Collections.singletonList(first));
        List<MessageExt> all = new ArrayList<>();
        for (int tries = 0; tries < 5 && all.isEmpty(); tries++) {
            // A pull that ends just now can forget that there was a seek.
            consumer.seekToBegin(first);
            all = poll(consumer, 30, 0, PATIENCE / 5);
        }
        System.out.println("from the start " + summary(all));
        consumer.seek(first, 25);
        System.out.println("from 25 " + summary(poll(consumer, 5)));
        consumer.seek(first, consumer.offsetForTimestamp(first, middle));
        System.out.println("from a moment " + summary(poll(consumer, 10)));
        consumer.seekToEnd(first);
        consumer.pause(Collections.singletonList(first));
        producer.send(new Message(ASSIGNED, bytes("at the end")), first);
        consumer.resume(Collections.singletonList(first));
        System.out.println("from the end " + summary(poll(consumer, 1)));
        consumer.commitSync();
        System.out.println("committed " + consumer.committed(first));
        try {
            consumer.seek(first, 1000);
        } catch (Exception refused) {
            System.out.println("seek refused");
        }
        consumer.shutdown();
    }

    static DefaultLitePullConsumer consumer(String group) {
        DefaultLitePullConsumer consumer = Patient.made(new DefaultLitePullConsumer("group-" + group));
        consumer.setNamesrvAddr(servers);
        consumer.setPollNameServerInterval(1000);
        consumer.setHeartbeatBrokerInterval(1000);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        return consumer;
    }

    static List<MessageExt> poll(DefaultLitePullConsumer consumer, int count) {
        return poll(consumer, count, -1, PATIENCE);
    }

    /** From an offset on: a pull from before a seek may come first. */
    static List<MessageExt> poll(
            DefaultLitePullConsumer consumer, int count, long first, long patience) {
        List<MessageExt> all = new ArrayList<>();
        long deadline = System.currentTimeMillis() + patience;
        while (all.size() < count && System.currentTimeMillis() < deadline) {
            for (MessageExt message : consumer.poll(100)) {
                if (first < 0 || !all.isEmpty() || message.getQueueOffset() == first) {
                    all.add(message);
                }
            }
        }
        return all;
    }

    static String summary(Collection<MessageExt> messages) {
        List<String> texts = new ArrayList<>();
        messages.forEach(each -> texts.add(new String(each.getBody(), StandardCharsets.UTF_8)));
        return texts.size() + " " + texts.get(0) + " … " + texts.get(texts.size() - 1);
    }

    static void send(String topic, int count) throws Exception {
        for (int i = 0; i < count; i++) {
            producer.send(new Message(topic, i % 2 == 1 ? "odd" : "even", bytes(topic + " " + i)));
        }
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
