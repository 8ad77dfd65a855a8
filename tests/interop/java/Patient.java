import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.producer.DefaultMQProducer;

/**
 * Gives clients time. Their own three seconds for a response include what a new process needs to load
 * its classes and to connect, which takes longer where many processes start at once.
 */
public class Patient {
    static final int MILLIS = 20_000;

    /** Returns a client that waits for name servers and brokers; one that sends waits for receipts, too. */
    public static <C extends ClientConfig> C made(C client) {
        client.setMqClientApiTimeout(MILLIS);
        if (client instanceof DefaultMQProducer) {
            ((DefaultMQProducer) client).setSendMsgTimeout(MILLIS);
        }
        return client;
    }
}
