import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.broker.BrokerStartup;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.namesrv.NamesrvStartup;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * All parts in one process, each used once, so that Java can keep their classes ready for the next
 * processes: files of settings of a name server and a broker, and the name server's address.
 */
public class Training {
    public static void main(String[] args) throws Exception {
        Awake.start();
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
        try {
            more(args[2]);
        } catch (Exception unlikely) {
            System.out.println("the rest is not kept: " + unlikely);
        }
        for (String command : COMMANDS) {
            MQAdminStartup.main0((command + " -n " + args[2]).split(" "), null);
        }
        consumer.shutdown();
        producer.shutdown();
        System.exit(0);
    }

    static final String[] COMMANDS = {
        "clusterList", "topicList", "updateTopic -c DefaultCluster -t made -r 2 -w 2", "topicRoute -t trained",
        "topicStatus -t trained", "consumerProgress -g trainees", "consumerConnection -g trainees",
    };

    /** Uses what some of the programs use. */
    static void more(String servers) throws Exception {
        DefaultMQPushConsumer orderly = new DefaultMQPushConsumer("orderly");
        orderly.setNamesrvAddr(servers);
        orderly.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        orderly.subscribe("trained", "a || b");
        orderly.registerMessageListener(
            (MessageListenerOrderly) (messages, context) -> ConsumeOrderlyStatus.SUCCESS);
        orderly.start();
        TransactionMQProducer transacting = new TransactionMQProducer("transacting");
        transacting.setNamesrvAddr(servers);
        transacting.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object given) {
                return LocalTransactionState.COMMIT_MESSAGE;
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                return LocalTransactionState.COMMIT_MESSAGE;
            }
        });
        transacting.start();
        transacting.sendMessageInTransaction(new Message("trained", "a", "k", new byte[1]), null);
        DefaultMQProducer traced = new DefaultMQProducer("traced", null, true, null);
        traced.setNamesrvAddr(servers);
        traced.start();
        traced.send(new Message("trained", "a", "k", new byte[1]), new SelectMessageQueueByHash(), "key");
        traced.send(Arrays.asList(new Message("trained", new byte[1]), new Message("trained", new byte[1])));
        DefaultLitePullConsumer pulling = new DefaultLitePullConsumer("pulling");
        pulling.setNamesrvAddr(servers);
        pulling.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        pulling.subscribe("trained", "*");
        pulling.start();
        pulling.poll(2000);
        pulling.commitSync();
        pulling.shutdown();
        traced.shutdown();
        transacting.shutdown();
        orderly.shutdown();
    }
}
