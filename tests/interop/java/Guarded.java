import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.remoting.RPCHook;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

/**
 * Sends and consumes with an account, for each line of its input: name server, key, secret, topic, group
 * and count, with tabs between. One that may not send tries to consume what others have sent, until it is
 * refused or gets something. A line "#done" follows what it prints of each.
 */
public class Guarded {
    static final int HEARTBEAT = 34, MEMBERS = 38;

    /** Signs, and notes which requests are refused. */
    static class Noting implements RPCHook {
        final RPCHook signing;
        final Set<Integer> refused = ConcurrentHashMap.newKeySet();

        Noting(RPCHook signing) {
            this.signing = signing;
        }

        @Override
        public void doBeforeRequest(String address, RemotingCommand request) {
            if (signing != null) {
                signing.doBeforeRequest(address, request);
            }
        }

        @Override
        public void doAfterResponse(String address, RemotingCommand request, RemotingCommand response) {
            int code = request.getCode();
            if (response == null || response.getCode() == 0 || code != HEARTBEAT && code != MEMBERS) {
                return;
            }
            // Nor is it refused who asks for the members of a group before its own heartbeat has come.
            if (response.getRemark() == null || !response.getRemark().startsWith("no consumer for this group")) {
                refused.add(code);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        Awake.start();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String line;
        while ((line = input.readLine()) != null) {
            String[] words = line.split("\t", -1);
            RPCHook hook = words[1].isEmpty()
                ? null : new AclClientRPCHook(new SessionCredentials(words[1], words[2]));
            DefaultMQProducer producer = Patient.made(new DefaultMQProducer("producers", hook));
            try {
                work(words, hook, producer);
                System.out.println("end");
            } catch (Throwable problem) {
                System.out.println(problem + " because of " + problem.getCause());
            }
            producer.shutdown();
            System.out.println("#done");
        }
        System.exit(0);
    }

    static void work(String[] args, RPCHook hook, DefaultMQProducer producer) throws Exception {
        int count = Integer.parseInt(args[5]);
        producer.setNamesrvAddr(args[0]);
        producer.setPollNameServerInterval(1000);
        producer.setHeartbeatBrokerInterval(1000);
        producer.setRetryTimesWhenSendFailed(0);
        producer.start();
        int sent = 0;
        for (int i = 0; i < count; i++) {
            try {
                producer.send(new Message(args[3], "tag", "key" + i, ("message " + i).getBytes()));
                sent++;
            } catch (MQClientException failed) {
                if (!(failed.getCause() instanceof MQBrokerException)) {
                    throw failed;
                }
                MQBrokerException refused = (MQBrokerException) failed.getCause();
                System.out.println("refused " + refused.getResponseCode() + " "
                    + refused.getErrorMessage());
                break;
            }
        }
        System.out.println("sent " + sent);
        Set<String> bodies = ConcurrentHashMap.newKeySet();
        Noting noting = new Noting(hook);
        DefaultMQPushConsumer consumer =
            Patient.made(new DefaultMQPushConsumer(args[4], noting, new AllocateMessageQueueAveragely()));
        consumer.setNamesrvAddr(args[0]);
        consumer.setPollNameServerInterval(1000);
        consumer.setHeartbeatBrokerInterval(1000);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(args[3], "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(each -> bodies.add(new String(each.getBody())));
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        long end = System.nanoTime() + 60_000_000_000L;
        while (bodies.size() < Math.max(sent, 1) && noting.refused.size() < 2 && System.nanoTime() < end) {
            Thread.sleep(20);
        }
        if (!noting.refused.isEmpty()) {
            System.out.println("refused to consume " + new TreeSet<>(noting.refused));
        }
        System.out.println("consumed " + bodies.size());
        if (sent > 0) {
            System.out.println("found " + producer.queryMessage(
                args[3], "key0", 8, 0, System.currentTimeMillis() + 60000).getMessageList().size());
        }
        consumer.shutdown();
    }
}
