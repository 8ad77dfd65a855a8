import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.rocketmq.client.consumer.AckCallback;
import org.apache.rocketmq.client.consumer.AckResult;
import org.apache.rocketmq.client.consumer.PopCallback;
import org.apache.rocketmq.client.consumer.PopResult;
import org.apache.rocketmq.client.impl.MQClientAPIImpl;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.header.AckMessageRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.ExtraInfoUtil;
import org.apache.rocketmq.remoting.protocol.header.PopMessageRequestHeader;

/**
 * POP with the calls that Apache's client has for it: `popMessageAsync`, then `ackMessageAsync` for one
 * message or `batchAckMessageAsync` for several, each waited for.
 */
public class SidePop {
    static final long TIMEOUT = 20_000;
    static final long INVISIBLE = 60_000;

    static void run(DefaultMQProducer client, String topic, String group, int size, long nanos)
        throws Exception {
        MQClientAPIImpl calls =
            client.getDefaultMQProducerImpl().getMqClientFactory().getMQClientAPIImpl();
        MessageQueue any = client.fetchPublishMessageQueues(topic).get(0);
        String broker = any.getBrokerName();
        String address =
            client.getDefaultMQProducerImpl().getMqClientFactory().findBrokerAddressInPublish(broker);
        SidePop popping = new SidePop(calls, address, broker, topic, group, size);
        popping.next();
        System.out.println("begun");
        long start = System.nanoTime();
        long last = start;
        long count = 0;
        while (last - start < nanos) {
            int found = popping.next();
            if (found == 0) {
                break;
            }
            count += found;
            last = System.nanoTime();
        }
        SideLoad.done(count, last - start);
    }

    final MQClientAPIImpl calls;
    final String address;
    final String broker;
    final String topic;
    final String group;
    final int size;

    SidePop(MQClientAPIImpl calls, String address, String broker, String topic, String group, int size) {
        this.calls = calls;
        this.address = address;
        this.broker = broker;
        this.topic = topic;
        this.group = group;
        this.size = size;
    }

    /** Pops and acknowledges; gives how many messages there were. */
    int next() throws Exception {
        PopMessageRequestHeader header = new PopMessageRequestHeader();
        header.setConsumerGroup(group);
        header.setTopic(topic);
        header.setQueueId(-1);
        header.setMaxMsgNums(size);
        header.setInvisibleTime(INVISIBLE);
        header.setPollTime(1000);
        header.setBornTime(System.currentTimeMillis());
        header.setInitMode(0);
        header.setExpType("TAG");
        header.setExp("*");
        header.setOrder(false);
        CompletableFuture<PopResult> popped = new CompletableFuture<>();
        calls.popMessageAsync(broker, address, header, TIMEOUT, new PopCallback() {
            @Override
            public void onSuccess(PopResult result) {
                popped.complete(result);
            }

            @Override
            public void onException(Throwable error) {
                popped.completeExceptionally(error);
            }
        });
        List<MessageExt> messages = popped.get().getMsgFoundList();
        if (messages == null || messages.isEmpty()) {
            return 0;
        }
        acknowledge(messages);
        return messages.size();
    }

    void acknowledge(List<MessageExt> messages) throws Exception {
        CompletableFuture<AckResult> acknowledged = new CompletableFuture<>();
        AckCallback callback = new AckCallback() {
            @Override
            public void onSuccess(AckResult result) {
                acknowledged.complete(result);
            }

            @Override
            public void onException(Throwable error) {
                acknowledged.completeExceptionally(error);
            }
        };
        if (messages.size() == 1) {
            String handle = messages.get(0).getProperty(MessageConst.PROPERTY_POP_CK);
            String[] parts = ExtraInfoUtil.split(handle);
            AckMessageRequestHeader header = new AckMessageRequestHeader();
            header.setTopic(ExtraInfoUtil.getRealTopic(parts, topic, group));
            header.setConsumerGroup(group);
            header.setQueueId(ExtraInfoUtil.getQueueId(parts));
            header.setOffset(ExtraInfoUtil.getQueueOffset(parts));
            header.setExtraInfo(handle);
            header.setBrokerName(broker);
            calls.ackMessageAsync(address, TIMEOUT, callback, header);
        } else {
            List<String> handles = new ArrayList<>(messages.size());
            for (MessageExt message : messages) {
                handles.add(message.getProperty(MessageConst.PROPERTY_POP_CK));
            }
            calls.batchAckMessageAsync(address, TIMEOUT, callback, topic, group, handles);
        }
        acknowledged.get();
    }
}
