import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.TreeSet;
import org.apache.rocketmq.client.AccessChannel;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.trace.TraceBean;
import org.apache.rocketmq.client.trace.TraceContext;
import org.apache.rocketmq.client.trace.TraceDataEncoder;
import org.apache.rocketmq.client.trace.TraceTransferBean;
import org.apache.rocketmq.client.trace.TraceType;
import org.apache.rocketmq.common.message.MessageType;

/** Prints trace records as 5.x writes them, base64, and the keys they are found by: java-traces.json. */
public class TraceVectors {
    public static void main(String[] args) {
        TraceBean sent = bean("orders", "7F000001000051AF0000000000002CB2", "paid", "A17 B18", "127.0.0.1:10911");
        sent.setBodyLength(42);
        sent.setMsgType(MessageType.Normal_Msg);
        sent.setOffsetMsgId("7F00000100002A9F0000000000000457");
        TraceContext context = context(TraceType.Pub, "DefaultRegion", "shop", 1794707172145L, sent);
        context.setCostTime(3);
        print(context);
        TraceBean half = bean("größe", "M2", null, null, "[::1]:10911");
        half.setMsgType(MessageType.Trans_Msg_Half);
        half.setOffsetMsgId(null);
        context = context(TraceType.Pub, "eu", "shop", 1L, half);
        context.setCostTime(5000);
        context.setSuccess(false);
        print(context);
        TraceBean first = bean("", "M1", "", "k", "");
        first.setRetryTimes(2);
        TraceBean second = bean("", "M2", "", null, "");
        context = context(TraceType.SubBefore, "DefaultRegion", "billing", 1794707172146L, first, second);
        context.setRequestId("R1");
        print(context);
        context = context(TraceType.SubAfter, "DefaultRegion", "billing", 1794707172150L, first, second);
        context.setRequestId("R1");
        context.setCostTime(2);
        context.setSuccess(false);
        context.setContextCode(2);
        print(context);
        TraceBean end = bean("orders", "M3", null, "A17", "127.0.0.1:10911");
        end.setMsgType(MessageType.Trans_msg_Commit);
        end.setTransactionId("M3");
        end.setTransactionState(LocalTransactionState.COMMIT_MESSAGE);
        print(context(TraceType.EndTransaction, "DefaultRegion", "shop", 1794707172151L, end));
        end.setTransactionId(null);
        end.setFromTransactionCheck(true);
        end.setTransactionState(LocalTransactionState.UNKNOW);
        print(context(TraceType.EndTransaction, "DefaultRegion", "shop", 1794707172152L, end));
        end.setTransactionState(LocalTransactionState.ROLLBACK_MESSAGE);
        print(context(TraceType.EndTransaction, "DefaultRegion", "shop", 1794707172152L, end));
        TraceBean recalled = bean("orders", "M4", "", "", "");
        print(context(TraceType.Recall, "DefaultRegion", "shop", 1794707172153L, recalled));
    }

    static TraceBean bean(String topic, String id, String tags, String keys, String host) {
        TraceBean bean = new TraceBean();
        bean.setTopic(topic);
        bean.setMsgId(id);
        bean.setTags(tags);
        bean.setKeys(keys);
        bean.setStoreHost(host);
        return bean;
    }

    static TraceContext context(TraceType type, String region, String group, long time, TraceBean... beans) {
        TraceContext context = new TraceContext();
        context.setTraceType(type);
        context.setRegionId(region);
        context.setGroupName(group);
        context.setTimeStamp(time);
        context.setAccessChannel(AccessChannel.LOCAL);
        context.setTraceBeans(new ArrayList<>(Arrays.asList(beans)));
        return context;
    }

    static void print(TraceContext context) {
        TraceTransferBean written = TraceDataEncoder.encoderFromContextBean(context);
        byte[] text = written.getTransData().getBytes(StandardCharsets.UTF_8);
        System.out.println(Base64.getEncoder().encodeToString(text) + " " + new TreeSet<>(written.getTransKey()));
    }
}
