import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.broker.BrokerStartup;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.namesrv.NamesrvStartup;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * All parts in one process, each used once, so that Java can keep their classes ready for the next
 * processes: files of settings of a name server and a broker, and the name server's address.
 */
public class Training {
    public static void main(String[] args) throws Exception {
        NamesrvStartup.main0(new String[] {"-c", args[0]});
        BrokerStartup.main(new String[] {"-c", args[1]});
        DefaultMQProducer producer = new DefaultMQProducer("training");
        producer.setNamesrvAddr(args[2]);
        producer.start();
        for (int n = 0; n < 20; n++) {
            try {
                producer.send(new Message("trained", "x".getBytes(StandardCharsets.UTF_8)));
                break;
            } catch (Exception notYet) {
                Thread.sleep(200);
            }
        }
        CountDownLatch got = new CountDownLatch(1);
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("trainees");
        consumer.setNamesrvAddr(args[2]);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe("trained", "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            got.countDown();
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        got.await(10, TimeUnit.SECONDS);
        MQAdminStartup.main0(new String[] {"clusterList", "-n", args[2]}, null);
        System.exit(0);
    }
}
