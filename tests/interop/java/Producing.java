import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageQueue;

/** Sends in every way a Java producer can, and prints what came of it: name server. */
public class Producing {
    static DefaultMQProducer producer;

    public static void main(String[] args) throws Exception {
        Awake.start();
        int status = 1;
        try {
            producer = start(args[0], "producing");
            one();
            callbacks();
            batch();
            ordered();
            pinned();
            madeTopic();
            bodies();
            tooLarge(args[0]);
            inNamespace(args[0]);
            producer.shutdown();
            System.out.println("end");
            status = 0;
        } catch (Throwable problem) {
            problem.printStackTrace(System.out);
        }
        System.exit(status);
    }

    static DefaultMQProducer start(String servers, String group) throws Exception {
        DefaultMQProducer made = Patient.made(new DefaultMQProducer(group));
        made.setNamesrvAddr(servers);
        made.setPollNameServerInterval(1000);
        made.setHeartbeatBrokerInterval(1000);
        made.setInstanceName(group);
        made.setSendMsgTimeout(10_000);
        made.start();
        return made;
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static void say(String way, SendResult result) {
        System.out.println(way + " " + result.getSendStatus() + " " + result.getMessageQueue().getTopic()
            + "/" + result.getMessageQueue().getQueueId() + "@" + result.getQueueOffset());
    }

    static void one() throws Exception {
        Message message = new Message("singles", "paid", "k1 k2", 7, bytes("größe 1"), true);
        message.putUserProperty("region", "eu \"west\" €");
        SendResult result = producer.send(message);
        say("sync", result);
        String unique = message.getProperty(MessageConst.PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX);
        System.out.println("ids " + result.getMsgId().equals(unique)
            + " " + result.getOffsetMsgId().length() + " " + result.getRegionId() + " " + result.isTraceOn());
        System.out.println("queues " + producer.fetchPublishMessageQueues("singles").size());
        producer.sendOneway(new Message("oneways", bytes("no answer")));
    }

    static void callbacks() throws Exception {
        int count = 300;
        CountDownLatch missing = new CountDownLatch(count);
        AtomicInteger failed = new AtomicInteger();
        for (int i = 0; i < count; i++) {
            producer.send(new Message("callbacks", bytes("async " + i)), new SendCallback() {
                @Override
                public void onSuccess(SendResult result) {
                    missing.countDown();
                }

                @Override
                public void onException(Throwable problem) {
                    problem.printStackTrace(System.out);
                    failed.incrementAndGet();
                    missing.countDown();
                }
            });
        }
        missing.await(30, TimeUnit.SECONDS);
        System.out.println("async missing " + missing.getCount() + " failed " + failed.get());
    }

    static void batch() throws Exception {
        List<Message> messages = new ArrayList<>();
        for (int i = 0; i < 50; i++) {
            Message message = new Message("batches", "tag" + i % 2, "key" + i, bytes("part " + i));
            message.putUserProperty("number", "" + i);
            messages.add(message);
        }
        SendResult result = producer.send(messages);
        say("batch", result);
        System.out.println("batch ids " + result.getMsgId().split(",").length
            + " " + result.getOffsetMsgId().split(",").length);
    }

    static void ordered() throws Exception {
        for (int i = 0; i < 20; i++) {
            String customer = "customer-" + i % 5;
            Message message = new Message("orders", customer, bytes(customer + " step " + i / 5));
            SendResult result = producer.send(message, new SelectMessageQueueByHash(), customer);
            if (i < 5) {
                say("ordered " + customer, result);
            }
        }
    }

    static void pinned() throws Exception {
        List<MessageQueue> queues = producer.fetchPublishMessageQueues("singles");
        Collections.sort(queues);
        for (int i = 0; i < 3; i++) {
            say("pinned", producer.send(new Message("singles", bytes("to the third")), queues.get(2)));
        }
    }

    static void madeTopic() throws Exception {
        Compatible.createTopic(producer, "made", 6);
        System.out.println("made " + producer.fetchPublishMessageQueues("made").size());
        say("made", producer.send(new Message("made", bytes("in a topic that was made"))));
    }

    static void bodies() throws Exception {
        byte[] random = new byte[3 << 20];
        new Random(7).nextBytes(random);
        say("big", producer.send(new Message("big", random)));
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 1000; i++) {
            text.append("line ").append(i).append('\n');
        }
        say("compressed", producer.send(new Message("compressed", bytes(text.toString()))));
        Message delayed = new Message("delayed", bytes("later"));
        delayed.setDelayTimeLevel(2);
        say("delayed", producer.send(delayed));
    }

    static void tooLarge(String servers) throws Exception {
        DefaultMQProducer generous = Patient.made(new DefaultMQProducer("generous"));
        generous.setNamesrvAddr(servers);
        generous.setPollNameServerInterval(1000);
        generous.setHeartbeatBrokerInterval(1000);
        generous.setInstanceName("generous");
        generous.setMaxMessageSize(16 << 20);
        generous.setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE);
        generous.setSendMsgTimeout(10_000);
        generous.start();
        try {
            say("too large", generous.send(new Message("big", new byte[5 << 20])));
        } catch (MQBrokerException refused) {
            System.out.println("too large " + refused.getResponseCode());
        }
        say("next", generous.send(new Message("big", bytes("small again"))));
        generous.shutdown();
    }

    @SuppressWarnings("deprecation")
    static void inNamespace(String servers) throws Exception {
        DefaultMQProducer tenant = Patient.made(new DefaultMQProducer("tenant"));
        tenant.setNamesrvAddr(servers);
        tenant.setPollNameServerInterval(1000);
        tenant.setHeartbeatBrokerInterval(1000);
        tenant.setInstanceName("tenant");
        tenant.setNamespace("space");
        tenant.start();
        say("namespace", tenant.send(new Message("inside", bytes("in a namespace"))));
        tenant.shutdown();
    }
}
