import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;

/** Sends a message for each priority: name server, topic, then the priorities. */
public class Urgent {
    public static void main(String[] args) throws Exception {
        Awake.start();
        Method setPriority = Message.class.getMethod("setPriority", int.class); // since 5.4
        DefaultMQProducer producer = Patient.made(new DefaultMQProducer("urgent"));
        producer.setNamesrvAddr(args[0]);
        producer.start();
        for (int i = 2; i < args.length; i++) {
            Message message = new Message(args[1], args[i].getBytes(StandardCharsets.UTF_8));
            setPriority.invoke(message, Integer.parseInt(args[i]));
            SendResult result = producer.send(message);
            System.out.println(args[i] + " in " + result.getMessageQueue().getQueueId());
        }
        producer.shutdown();
        System.out.println("end");
        System.exit(0);
    }
}
