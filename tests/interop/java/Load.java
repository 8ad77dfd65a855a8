import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.common.message.Message;

/**
 * Sends message after message until told to stop on its input: name server, topic, milliseconds
 * between two, and how many keys if they are ordered. Prints the body of each that was accepted.
 */
public class Load {
    static volatile boolean over;

    public static void main(String[] args) throws Exception {
        Awake.start();
        DefaultMQProducer producer = Patient.made(new DefaultMQProducer("load"));
        producer.setNamesrvAddr(args[0]);
        producer.setHeartbeatBrokerInterval(1000);
        producer.setPollNameServerInterval(1000);
        producer.setSendMsgTimeout(3000);
        producer.setRetryTimesWhenSendFailed(3);
        producer.start();
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
        int keys = args.length > 3 ? Integer.parseInt(args[3]) : 0;
        int failed = 0;
        for (int i = 0; !over; i++) {
            String text = keys > 0 ? i % keys + ":" + i / keys : "message " + i;
            Message message = new Message(args[1], text.getBytes(StandardCharsets.UTF_8));
            try {
                SendStatus status = keys > 0
                    ? producer.send(message, new SelectMessageQueueByHash(), "key " + i % keys).getSendStatus()
                    : producer.send(message).getSendStatus();
                System.out.println((status == SendStatus.SEND_OK ? "sent " : status + " ") + text);
            } catch (Exception problem) {
                failed++;
                Throwable cause = problem.getCause() == null ? problem : problem.getCause();
                System.out.println("failed " + text + " " + cause.toString().split("\n")[0]);
            }
            Thread.sleep(Integer.parseInt(args[2]));
        }
        producer.shutdown();
        System.out.println("end " + failed);
        System.exit(0);
    }
}
