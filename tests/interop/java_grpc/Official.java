import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientConfigurationBuilder;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.StaticSessionCredentialsProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.MessageListener;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.Message;
import org.apache.rocketmq.client.apis.message.MessageBuilder;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;
import org.apache.rocketmq.client.apis.producer.SendReceipt;
import org.apache.rocketmq.client.apis.producer.Transaction;
import org.apache.rocketmq.client.apis.producer.TransactionResolution;

/**
 * Apache's gRPC client for Java, unmodified. Arguments: the proxy's address; then a user and a password,
 * if there is one. With "plain" before them it uses no TLS, which is its default. Plays one scene after
 * the other on topics that exist, and prints what came of it.
 */
public class Official {
    static final ClientServiceProvider provider = ClientServiceProvider.loadService();
    static final String[] TOPICS = {"o-normal", "o-fifo", "o-delay", "o-tx"};
    static final long PATIENCE = 60_000;
    static ClientConfiguration configuration;

    public static void main(String[] args) throws Exception {
        List<String> words = new ArrayList<>(Arrays.asList(args));
        boolean plain = words.remove("plain");
        ClientConfigurationBuilder builder = ClientConfiguration.newBuilder().setEndpoints(words.get(0));
        builder.setRequestTimeout(Duration.ofSeconds(30));
        if (plain) {
            builder.enableSsl(false);
        }
        if (words.size() > 1) {
            builder.setCredentialProvider(new StaticSessionCredentialsProvider(words.get(1), words.get(2)));
        }
        configuration = builder.build();
        try {
            if (plain || words.size() > 1) {
                briefly();
            } else {
                all();
            }
            System.out.println("end");
        } catch (Throwable problem) {
            problem.printStackTrace();
        } finally {
            System.exit(0); // threads of the client would keep it running
        }
    }

    static void briefly() throws Exception {
        try (Producer producer = provider.newProducerBuilder()
                .setClientConfiguration(configuration).setTopics("o-normal").build()) {
            producer.send(message("o-normal", "briefly").build());
            System.out.println("sent");
        } catch (Throwable problem) {
            System.out.println(refused(problem));
        }
    }

    static String refused(Throwable problem) {
        Throwable first = problem;
        while (first.getCause() != null) {
            first = first.getCause();
        }
        return "refused " + first.getClass().getSimpleName();
    }

    static void all() throws Exception {
        Heard heard = new Heard("retried");
        Heard ordered = new Heard("1");
        try (Producer producer = provider.newProducerBuilder()
                .setClientConfiguration(configuration).setTopics(TOPICS)
                .setTransactionChecker(view -> TransactionResolution.COMMIT).build()) {
            send(producer);
            simple();
            // Not closed: a push consumer waits for its last polls to end, which takes 20 s.
            consumer("o-push", heard, "o-normal", "o-delay", "o-tx");
            consumer("o-ordered", ordered, "o-fifo");
            System.out.println("push " + new TreeMap<>(heard.wait(17)));
            System.out.println("fifo " + ordered.order(6));
            refusals(producer);
        }
    }

    static void send(Producer producer) throws Exception {
        SendReceipt receipt = producer.send(message("o-normal", "first").setTag("t").setKeys("k1", "k2")
            .addProperty("colour", "blau").build());
        System.out.println("id " + receipt.getMessageId().toString().length());
        List<CompletableFuture<SendReceipt>> sent = new ArrayList<>();
        for (int number = 0; number < 10; number++) {
            sent.add(producer.sendAsync(message("o-normal", "async " + number).build()));
        }
        for (CompletableFuture<SendReceipt> each : sent) {
            each.get();
        }
        producer.send(message("o-normal", "retried").build());
        producer.send(message("o-normal", new String(new char[1_000_000]).replace('\0', 'x')).build());
        for (int number = 0; number < 5; number++) {
            producer.send(message("o-fifo", "" + number).setMessageGroup("customer-7").build());
        }
        long due = System.currentTimeMillis() + 3000;
        producer.send(message("o-delay", "late").setDeliveryTimestamp(due).build());
        receipt = producer.send(message("o-delay", "recalled").setDeliveryTimestamp(due + 5000).build());
        producer.recallMessage("o-delay", receipt.getRecallHandle());
        for (String end : Arrays.asList("commit", "rollback", "orphan")) {
            Transaction transaction = producer.beginTransaction();
            producer.send(message("o-tx", end).build(), transaction);
            if (end.equals("commit")) {
                transaction.commit();
            } else if (end.equals("rollback")) {
                transaction.rollback();
            }
        }
    }

    static void simple() throws Exception {
        Map<String, MessageView> seen = new HashMap<>();
        try (SimpleConsumer consumer = provider.newSimpleConsumerBuilder()
                .setClientConfiguration(configuration).setConsumerGroup("o-simple")
                .setAwaitDuration(Duration.ofSeconds(5))
                .setSubscriptionExpressions(Collections.singletonMap("o-normal", FilterExpression.SUB_ALL)).build()) {
            long end = System.currentTimeMillis() + PATIENCE;
            while (seen.size() < 13 && System.currentTimeMillis() < end) {
                for (MessageView view : consumer.receive(16, Duration.ofSeconds(30))) {
                    seen.put(text(view), view);
                    consumer.ack(view);
                }
            }
            System.out.println("simple " + seen.size());
            MessageView first = seen.get("first");
            System.out.println("first " + first.getTag().get() + " " + first.getKeys() + " " + first.getProperties()
                + " " + first.getDeliveryAttempt());
        }
        try (SimpleConsumer consumer = provider.newSimpleConsumerBuilder()
                .setClientConfiguration(configuration).setConsumerGroup("o-tagged")
                .setAwaitDuration(Duration.ofSeconds(5))
                .setSubscriptionExpressions(Collections.singletonMap("o-normal", new FilterExpression("t"))).build()) {
            List<String> attempts = new ArrayList<>();
            long end = System.currentTimeMillis() + PATIENCE;
            while (attempts.size() < 2 && System.currentTimeMillis() < end) {
                for (MessageView view : consumer.receive(1, Duration.ofSeconds(30))) {
                    attempts.add(text(view) + " " + view.getDeliveryAttempt());
                    if (attempts.size() == 1) {
                        consumer.changeInvisibleDuration(view, Duration.ofSeconds(1));
                    } else {
                        consumer.ack(view);
                    }
                }
            }
            System.out.println("tagged " + attempts);
        }
    }

    static void refusals(Producer producer) throws Exception {
        for (Message each : Arrays.asList(message("o-normal", "x").setMessageGroup("g").build(),
                                          message("o-nowhere", "x").build())) {
            try {
                producer.send(each);
                System.out.println("not refused");
            } catch (Throwable problem) {
                System.out.println(refused(problem));
            }
        }
    }

    static void consumer(String group, MessageListener listener, String... topics) throws Exception {
        Map<String, FilterExpression> subscriptions = new HashMap<>();
        for (String topic : topics) {
            subscriptions.put(topic, FilterExpression.SUB_ALL);
        }
        provider.newPushConsumerBuilder().setClientConfiguration(configuration).setConsumerGroup(group)
            .setSubscriptionExpressions(subscriptions).setMessageListener(listener).build();
    }

    static MessageBuilder message(String topic, String body) {
        return provider.newMessageBuilder().setTopic(topic).setBody(body.getBytes(StandardCharsets.UTF_8));
    }

    static String text(MessageView view) {
        ByteBuffer body = view.getBody();
        byte[] bytes = new byte[body.remaining()];
        body.get(bytes);
        String text = new String(bytes, StandardCharsets.UTF_8);
        return text.length() > 100 ? text.length() + " bytes" : text;
    }

    /** Counts how often each body came; fails the first time for one of them. */
    static class Heard implements MessageListener {
        private final String failing;
        private final List<String> bodies = Collections.synchronizedList(new ArrayList<>());

        Heard(String failing) {
            this.failing = failing;
        }

        @Override
        public ConsumeResult consume(MessageView view) {
            String body = text(view);
            bodies.add(body);
            return body.equals(failing) && view.getDeliveryAttempt() == 1
                ? ConsumeResult.FAILURE : ConsumeResult.SUCCESS;
        }

        List<String> order(int count) throws InterruptedException {
            long end = System.currentTimeMillis() + PATIENCE;
            while (bodies.size() < count && System.currentTimeMillis() < end) {
                Thread.sleep(20);
            }
            return new ArrayList<>(bodies);
        }

        Map<String, Integer> wait(int count) throws InterruptedException {
            Map<String, Integer> counts = new HashMap<>();
            for (String body : order(count)) {
                counts.merge(body, 1, Integer::sum);
            }
            return counts;
        }
    }
}
