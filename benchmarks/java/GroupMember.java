import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.impl.consumer.ProcessQueue;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Apache's client as a member of a group; it writes the lines of `benchmarks/_rebalance_process.py`.
 * Arguments: name server, topic, group, instance name, milliseconds of a handler; the system
 * property `heartbeat` is the milliseconds between two, by default Apache's. The JVM's `nanoTime`
 * is the machine's monotonic clock, as in Python.
 */
public class GroupMember {
    /** Handler calls at the same time, as in members of ours. */
    static final int HANDLERS = 200;

    public static void main(String[] args) throws Exception {
        String topic = args[1];
        double pause = Double.parseDouble(args[4]);
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(args[2]);
        consumer.setNamesrvAddr(args[0]);
        consumer.setInstanceName(args[3]);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setHeartbeatBrokerInterval(Integer.getInteger("heartbeat", 30_000));
        consumer.setConsumeThreadMax(HANDLERS);
        consumer.setConsumeThreadMin(HANDLERS);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                String place = message.getBrokerName() + ":" + message.getQueueId()
                    + " " + message.getQueueOffset();
                say("got " + System.nanoTime() + " " + place);
                rest(pause);
                say("end " + place);
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        say("ready");
        hear(input, "start");
        say("joining " + System.nanoTime());
        Thread watching = new Thread(() -> watch(consumer, topic));
        watching.setDaemon(true);
        watching.start();
        consumer.start();
        say("joined " + System.nanoTime() + " " + consumer.buildMQClientId());
        hear(input, "leave");
        say("leaving " + System.nanoTime());
        consumer.shutdown();
        say("left " + System.nanoTime());
        System.exit(0);
    }

    static synchronized void say(String line) {
        System.out.print(line + "\n");
        System.out.flush();
    }

    static void hear(BufferedReader input, String word) throws Exception {
        if (!word.equals(input.readLine())) {
            System.exit(1);
        }
    }

    static void rest(double millis) {
        try {
            Thread.sleep((long) millis);
        } catch (InterruptedException over) {
            Thread.currentThread().interrupt();
        }
    }

    /** Tells of each queue that comes and goes, at most two milliseconds later. */
    static void watch(DefaultMQPushConsumer consumer, String topic) {
        Set<String> before = new TreeSet<>();
        while (true) {
            Set<String> now = new TreeSet<>();
            Map<MessageQueue, ProcessQueue> table =
                consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable();
            for (Map.Entry<MessageQueue, ProcessQueue> each : table.entrySet()) {
                MessageQueue queue = each.getKey();
                if (queue.getTopic().equals(topic) && !each.getValue().isDropped()) {
                    now.add(queue.getBrokerName() + ":" + queue.getQueueId());
                }
            }
            tell("lost", before, now);
            tell("took", now, before);
            before = now;
            rest(2);
        }
    }

    static void tell(String word, Set<String> of, Set<String> without) {
        Set<String> changed = new TreeSet<>(of);
        changed.removeAll(without);
        if (!changed.isEmpty()) {
            say(word + " " + System.nanoTime() + " " + String.join(" ", changed));
        }
    }
}
