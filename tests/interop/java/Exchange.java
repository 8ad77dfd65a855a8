import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.rocketmq.client.AccessChannel;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.producer.TransactionSendResult;
import org.apache.rocketmq.client.trace.TraceContext;
import org.apache.rocketmq.client.trace.TraceDataEncoder;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * One side of an exchange: "transacting", "requesting", "replying" or "traces", then name server, group
 * and topic. Does what it is told on its input, one word and a text a line, and prints what came of it.
 */
public class Exchange {
    static String topic;
    static DefaultMQProducer producer;

    public static void main(String[] args) throws Exception {
        Awake.start();
        if (args.length > 1) {
            topic = args[3];
            producer = args[0].equals("transacting") ? transacting(args[2]) : Patient.made(new DefaultMQProducer(args[2]));
            producer.setNamesrvAddr(args[1]);
            producer.setPollNameServerInterval(1000);
            producer.setHeartbeatBrokerInterval(1000);
            producer.start();
            Compatible.createTopic(producer, topic, 4);
        }
        if (args[0].equals("replying")) {
            replying(args[1], args[2]);
        }
        System.out.println("ready");
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        String line;
        while ((line = input.readLine()) != null) {
            String[] words = line.split(" ", 2);
            try {
                obey(words[0], words[1]);
            } catch (Throwable problem) {
                System.out.println("failed " + problem);
            }
        }
        System.exit(0);
    }

    static void obey(String order, String text) throws Exception {
        if (order.equals("transact")) {
            TransactionSendResult result = producer.sendMessageInTransaction(message(text), null);
            System.out.println("transacted " + result.getLocalTransactionState() + " " + result.getMsgId());
        } else if (order.equals("delay")) {
            Message delayed = message(text);
            delayed.setDelayTimeLevel(1);
            System.out.println("delayed " + producer.send(delayed).getSendStatus());
        } else if (order.equals("ask")) {
            Message reply = producer.request(message(text), 20_000);
            System.out.println("reply " + new String(reply.getBody(), StandardCharsets.UTF_8)
                + " " + reply.getUserProperty("mood"));
        } else if (order.equals("trace")) {
            String trace = new String(Base64.getDecoder().decode(text), StandardCharsets.UTF_8);
            StringBuilder again = new StringBuilder();
            for (TraceContext each : TraceDataEncoder.decoderFromTraceDataString(trace)) {
                each.setAccessChannel(AccessChannel.LOCAL);
                again.append(TraceDataEncoder.encoderFromContextBean(each).getTransData());
            }
            System.out.println("trace " + Base64.getEncoder().encodeToString(again.toString().getBytes(StandardCharsets.UTF_8)));
        }
    }

    static DefaultMQProducer transacting(String group) {
        TransactionMQProducer transacting = Patient.made(new TransactionMQProducer(group));
        transacting.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
                String body = new String(message.getBody(), StandardCharsets.UTF_8);
                return body.startsWith("commit") ? LocalTransactionState.COMMIT_MESSAGE
                    : body.startsWith("roll back") ? LocalTransactionState.ROLLBACK_MESSAGE
                    : LocalTransactionState.UNKNOW;
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                String body = new String(message.getBody(), StandardCharsets.UTF_8);
                System.out.println("asked " + message.getTransactionId() + " " + body);
                return body.startsWith("good") ? LocalTransactionState.COMMIT_MESSAGE : LocalTransactionState.ROLLBACK_MESSAGE;
            }
        });
        return transacting;
    }

    static void replying(String servers, String group) throws Exception {
        DefaultMQPushConsumer consumer = Patient.made(new DefaultMQPushConsumer(group));
        consumer.setNamesrvAddr(servers);
        consumer.setPollNameServerInterval(1000);
        consumer.setHeartbeatBrokerInterval(1000);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt each : messages) {
                try {
                    String body = new String(each.getBody(), StandardCharsets.UTF_8);
                    Message reply = MessageUtil.createReplyMessage(each, ("you said " + body).getBytes(StandardCharsets.UTF_8));
                    reply.putUserProperty("mood", "good");
                    System.out.println("replied " + producer.send(reply, 10_000).getSendStatus());
                } catch (Exception problem) {
                    System.out.println("failed " + problem);
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
    }

    static Message message(String text) {
        return new Message(topic, "tagged", "key", text.getBytes(StandardCharsets.UTF_8));
    }
}
