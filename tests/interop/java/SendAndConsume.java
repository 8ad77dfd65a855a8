import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;

/** Sends messages to a topic and consumes them: name server, topic, count. */
public class SendAndConsume {
    public static void main(String[] args) throws Exception {
        Awake.start();
        int count = Integer.parseInt(args[2]);
        DefaultMQProducer producer = Patient.made(new DefaultMQProducer("producers-of-" + args[1]));
        producer.setNamesrvAddr(args[0]);
        producer.start();
        Set<String> brokers = new TreeSet<>();
        for (int i = 0; i < count; i++) {
            Message message = new Message(args[1], ("message " + i).getBytes());
            brokers.add(producer.send(message).getMessageQueue().getBrokerName());
        }
        System.out.println("sent " + count + " to " + brokers);

        Set<String> bodies = ConcurrentHashMap.newKeySet();
        CountDownLatch missing = new CountDownLatch(count);
        DefaultMQPushConsumer consumer = Patient.made(new DefaultMQPushConsumer("consumers-of-" + args[1]));
        consumer.setNamesrvAddr(args[0]);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(args[1], "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(each -> {
                if (bodies.add(new String(each.getBody()))) {
                    missing.countDown();
                }
            });
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        missing.await(60, TimeUnit.SECONDS);
        System.out.println("consumed " + bodies.size());
        consumer.shutdown();
        producer.shutdown();
        System.exit(0);
    }
}
