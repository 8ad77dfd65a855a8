import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;

/** Sends one message and consumes one: name server, topic to send to, topic to consume. */
public class Traced {
    public static void main(String[] args) throws Exception {
        Awake.start();
        DefaultMQProducer producer = Patient.made(new DefaultMQProducer("traced-producers"));
        producer.setNamesrvAddr(args[0]);
        producer.start();
        producer.send(new Message(args[1], "from Java".getBytes(StandardCharsets.UTF_8)));
        producer.shutdown();

        CountDownLatch missing = new CountDownLatch(1);
        DefaultMQPushConsumer consumer = Patient.made(new DefaultMQPushConsumer("traced-consumers"));
        consumer.setNamesrvAddr(args[0]);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(args[2], "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            missing.countDown();
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        boolean came = missing.await(60, TimeUnit.SECONDS);
        consumer.shutdown();
        System.out.println(came ? "end" : "nothing came");
        System.exit(0); // the agent exports its last spans
    }
}
