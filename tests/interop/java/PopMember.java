import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.TreeSet;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Members of a group that let the broker balance, and pop if it says so: name server, group, topic,
 * expression, instance name, how many. Prints what they get; a body that begins with "fail" is not
 * consumed at its first try. They leave when told on the input.
 */
public class PopMember {
    public static void main(String[] args) throws Exception {
        Awake.start();
        int count = Integer.parseInt(args[5]);
        DefaultMQPushConsumer[] members = new DefaultMQPushConsumer[count];
        for (int n = 0; n < count; n++) {
            DefaultMQPushConsumer consumer = members[n] = Patient.made(new DefaultMQPushConsumer(args[1]));
            consumer.setNamesrvAddr(args[0]);
            consumer.setInstanceName(args[4] + n);
            consumer.setPollNameServerInterval(1000);
            consumer.setHeartbeatBrokerInterval(1000);
            consumer.setConsumeThreadMin(2);
            consumer.setConsumeThreadMax(2);
            consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
            consumer.subscribe(args[2], args[3]);
            Compatible.balancedByBroker(consumer);
            Compatible.hideFor(consumer, 10_000); // what a member that was killed had taken comes soon
            String name = args[4] + n;
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                boolean failed = false;
                for (MessageExt message : messages) {
                    String body = new String(message.getBody(), StandardCharsets.UTF_8);
                    failed |= body.startsWith("fail") && message.getReconsumeTimes() == 0;
                    System.out.println("got " + name + "/" + message.getReconsumeTimes() + "/"
                        + message.getTopic() + "/" + (message.getProperty("POP_CK") != null) + " " + body);
                }
                return failed ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
            consumer.start();
        }
        System.out.println("started");
        new BufferedReader(new InputStreamReader(System.in)).readLine();
        for (DefaultMQPushConsumer consumer : members) {
            consumer.shutdown();
        }
        System.out.println("left");
        System.exit(0);
    }
}
