import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.util.TreeSet;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.impl.consumer.DefaultLitePullConsumerImpl;
import org.apache.rocketmq.client.impl.consumer.RebalanceImpl;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * A member of a group that polls, in a process of its own: name server, group, topic, instance name.
 * Prints what it owns and gets; leaves when told on its input.
 */
public class LiteMember {
    static volatile boolean over;

    public static void main(String[] args) throws Exception {
        Awake.start();
        String topic = args[2];
        DefaultLitePullConsumer consumer = Patient.made(new DefaultLitePullConsumer(args[1]));
        consumer.setNamesrvAddr(args[0]);
        consumer.setInstanceName(args[3]);
        consumer.setPollNameServerInterval(1000);
        consumer.setHeartbeatBrokerInterval(1000);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.start();
        System.out.println("is " + consumer.buildMQClientId());
        RebalanceImpl held = held(consumer);
        Thread listening = new Thread(() -> {
            try {
                new BufferedReader(new InputStreamReader(System.in)).readLine();
            } catch (Exception closed) {
                System.out.println("input closed");
            }
            over = true;
        });
        listening.setDaemon(true);
        listening.start();
        String last = null;
        while (!over) {
            for (MessageExt message : consumer.poll(50)) {
                Member.tell(message);
            }
            TreeSet<String> owned = new TreeSet<>();
            for (MessageQueue each : held.getProcessQueueTable().keySet()) {
                owned.add(each.getBrokerName() + "/" + each.getQueueId());
            }
            String now = "owns " + String.join(" ", owned);
            if (!now.equals(last)) {
                System.out.println(now);
                last = now;
            }
        }
        consumer.commitSync();
        consumer.shutdown();
        System.out.println("left");
        System.exit(0);
    }

    static RebalanceImpl held(DefaultLitePullConsumer consumer) throws Exception {
        Field inner = DefaultLitePullConsumer.class.getDeclaredField("defaultLitePullConsumerImpl");
        inner.setAccessible(true);
        Field held = DefaultLitePullConsumerImpl.class.getDeclaredField("rebalanceImpl");
        held.setAccessible(true);
        return (RebalanceImpl) held.get(inner.get(consumer));
    }
}
