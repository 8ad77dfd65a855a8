import java.lang.reflect.Method;
import java.util.Collections;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;

/** Calls whose signatures changed between 4.x and 5.x. */
public class Compatible {
    static void broadcast(DefaultMQPushConsumer consumer) throws Exception {
        for (Method method : DefaultMQPushConsumer.class.getMethods()) {
            if (method.getName().equals("setMessageModel")) {
                Class<?> model = method.getParameterTypes()[0];
                method.invoke(consumer, model.getField("BROADCASTING").get(null));
            }
        }
    }

    static void createTopic(DefaultMQProducer producer, String topic, int queues) throws Exception {
        for (Method method : DefaultMQProducer.class.getMethods()) {
            if (method.getName().equals("createTopic")) {
                Class<?>[] kinds = method.getParameterTypes();
                if (kinds.length == 3) {
                    method.invoke(producer, "TBW102", topic, queues);
                } else if (kinds.length == 4 && kinds[3] != int.class) {
                    method.invoke(producer, "TBW102", topic, queues, Collections.emptyMap());
                }
            }
        }
    }

    /** Lets the broker do the balancing; only 5.x can. */
    static void balancedByBroker(DefaultMQPushConsumer consumer) throws Exception {
        DefaultMQPushConsumer.class.getMethod("setClientRebalance", boolean.class).invoke(consumer, false);
    }

    /** Says for how long popped messages are hidden from others; only 5.x can. */
    static void hideFor(DefaultMQPushConsumer consumer, long milliseconds) throws Exception {
        DefaultMQPushConsumer.class.getMethod("setPopInvisibleTime", long.class).invoke(consumer, milliseconds);
    }
}
