import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.TreeSet;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * A member of a group in a process of its own: name server, group, topic, instance name, and any of
 * "orderly", "balanced-by-broker" and "tags:a || b". Prints what it owns and gets; leaves when told on its input.
 */
public class Member {
    public static void main(String[] args) throws Exception {
        Awake.start();
        String topic = args[2];
        List<String> options = Arrays.asList(args).subList(4, args.length);
        DefaultMQPushConsumer consumer = Patient.made(new DefaultMQPushConsumer(args[1]));
        consumer.setNamesrvAddr(args[0]);
        consumer.setInstanceName(args[3]);
        consumer.setPollNameServerInterval(1000);
        consumer.setHeartbeatBrokerInterval(1000);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, options.stream().filter(each -> each.startsWith("tags:"))
            .map(each -> each.substring(5)).findFirst().orElse("*"));
        if (options.contains("balanced-by-broker")) {
            Compatible.balancedByBroker(consumer);
        }
        if (options.contains("orderly")) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                messages.forEach(Member::tell);
                return ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                messages.forEach(Member::tell);
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
        consumer.start();
        System.out.println("is " + consumer.buildMQClientId());
        Thread watching = new Thread(() -> watch(consumer, topic));
        watching.setDaemon(true);
        watching.start();
        new BufferedReader(new InputStreamReader(System.in)).readLine();
        consumer.shutdown();
        System.out.println("left");
        System.exit(0);
    }

    static void tell(MessageExt message) {
        System.out.println("got " + message.getBrokerName() + "/" + message.getQueueId() + "@"
            + message.getQueueOffset() + " " + new String(message.getBody(), StandardCharsets.UTF_8));
    }

    static void watch(DefaultMQPushConsumer consumer, String topic) {
        String last = null;
        while (true) {
            TreeSet<String> owned = new TreeSet<>();
            for (MessageQueue each : consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().keySet()) {
                if (each.getTopic().equals(topic)) {
                    owned.add(each.getBrokerName() + "/" + each.getQueueId());
                }
            }
            String now = "owns " + String.join(" ", owned);
            if (!now.equals(last)) {
                System.out.println(now);
                last = now;
            }
            try {
                Thread.sleep(20);
            } catch (InterruptedException over) {
                return;
            }
        }
    }
}
