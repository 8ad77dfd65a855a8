/*
 * Writes what RocketMQ's own producer classes do, one JSON object a line, for
 * tests/vectors/java-producer.jsonl. Run once per client line, from a folder with its jars:
 *
 *   java -cp '4.9.7/*' ProducerVectors.java 4.x  > java-producer.jsonl
 *   java -cp '5.5.0/*' ProducerVectors.java 5.x >> java-producer.jsonl
 *
 * Classes that moved between the lines are reached by reflection. Time is the wall clock: pauses are
 * made to pass by moving the recorded timestamps, and times are rounded before they are written.
 */

import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.AbstractExecutorService;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.common.ThreadLocalIndex;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl;
import org.apache.rocketmq.client.impl.producer.TopicPublishInfo;
import org.apache.rocketmq.client.latency.MQFaultStrategy;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.common.ServiceState;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.InvokeCallback;
import org.apache.rocketmq.remoting.RemotingClient;
import org.apache.rocketmq.remoting.exception.RemotingConnectException;
import org.apache.rocketmq.remoting.exception.RemotingSendRequestException;
import org.apache.rocketmq.remoting.exception.RemotingTimeoutException;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;

public class ProducerVectors {
    static String line;
    static boolean v4;
    static final Random random = new Random(20);
    static final String TOPIC = "T";
    static final PrintStream out = System.out;

    public static void main(String[] args) throws Exception {
        line = args[0];
        v4 = line.equals("4.x");
        System.setOut(System.err);  // where the classes log when they are loaded
        hashes();
        indexes();
        turns();
        pauses();
        faults();
        routes();
        sends();
        out.flush();
        System.exit(0);
    }

    // ---- JSON -------------------------------------------------------------------------------

    static String json(Object value) {
        if (value == null || value instanceof Number || value instanceof Boolean) {
            return String.valueOf(value);
        }
        if (value instanceof Raw) {
            return ((Raw) value).text;
        }
        StringBuilder out = new StringBuilder();
        if (value instanceof Map) {
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                out.append(out.length() == 0 ? "" : ",");
                out.append(json(entry.getKey().toString())).append(':').append(json(entry.getValue()));
            }
            return "{" + out + "}";
        }
        if (value instanceof Iterable) {
            for (Object item : (Iterable<?>) value) {
                out.append(out.length() == 0 ? "" : ",").append(json(item));
            }
            return "[" + out + "]";
        }
        for (char c : value.toString().toCharArray()) {
            if (c == '"' || c == '\\' || c < ' ' || c > '~') {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        return "\"" + out + "\"";
    }

    static class Raw {
        final String text;

        Raw(String text) {
            this.text = text;
        }
    }

    static void emit(String kind, Object... pairs) {
        Map<String, Object> row = new LinkedHashMap<>();
        row.put("kind", kind);
        row.put("line", line);
        for (int i = 0; i < pairs.length; i += 2) {
            row.put((String) pairs[i], pairs[i + 1]);
        }
        out.println(json(row));
    }

    // ---- reflection -------------------------------------------------------------------------

    static Field field(Object owner, String name) throws Exception {
        for (Class<?> c = owner.getClass(); c != null; c = c.getSuperclass()) {
            try {
                Field found = c.getDeclaredField(name);
                found.setAccessible(true);
                return found;
            } catch (NoSuchFieldException e) {
                continue;
            }
        }
        throw new NoSuchFieldException(name);
    }

    static Object get(Object owner, String name) throws Exception {
        return field(owner, name).get(owner);
    }

    static void set(Object owner, String name, Object value) throws Exception {
        field(owner, name).set(owner, value);
    }

    static Object call(Object owner, String name, Object... arguments) throws Exception {
        for (Class<?> c = owner.getClass(); c != null; c = c.getSuperclass()) {
            for (Method method : c.getDeclaredMethods()) {
                if (method.getName().equals(name) && method.getParameterCount() == arguments.length
                    && !method.isBridge()) {
                    method.setAccessible(true);
                    try {
                        return method.invoke(owner, arguments);
                    } catch (InvocationTargetException e) {
                        throw (Exception) e.getCause();
                    }
                }
            }
        }
        throw new NoSuchMethodException(name);
    }

    @SuppressWarnings("unchecked")
    static void stand(ThreadLocalIndex index, Integer at) throws Exception {
        ((ThreadLocal<Integer>) get(index, "threadLocalIndex")).set(at);
    }

    @SuppressWarnings("unchecked")
    static int standing(ThreadLocalIndex index) throws Exception {
        return ((ThreadLocal<Integer>) get(index, "threadLocalIndex")).get();
    }

    /** Makes every later restart jump to the given places, in turn. */
    static void scriptRestarts(ThreadLocalIndex index, List<Integer> places) throws Exception {
        set(index, "random", new Random() {
            int used = 0;

            @Override
            public int nextInt(int bound) {
                return places.get(used++ % places.size());
            }
        });
    }

    // ---- building blocks --------------------------------------------------------------------

    static Class<?> routeClass() throws Exception {
        return Class.forName(v4 ? "org.apache.rocketmq.common.protocol.route.TopicRouteData"
            : "org.apache.rocketmq.remoting.protocol.route.TopicRouteData");
    }

    static Object route(String text) throws Exception {
        return RemotingSerializable.decode(text.getBytes("UTF-8"), routeClass());
    }

    static String routeJson(List<Object> brokers) {
        StringBuilder queues = new StringBuilder();
        StringBuilder datas = new StringBuilder();
        for (Object broker : brokers) {
            List<?> pair = (List<?>) broker;
            String comma = queues.length() == 0 ? "" : ",";
            queues.append(comma).append("{\"brokerName\":\"" + pair.get(0) + "\",\"perm\":6,\"readQueueNums\":"
                + pair.get(1) + ",\"writeQueueNums\":" + pair.get(1) + "}");
            datas.append(comma).append("{\"brokerName\":\"" + pair.get(0) + "\",\"brokerAddrs\":{\"0\":\""
                + pair.get(0) + ":10911\"}}");
        }
        return "{\"queueDatas\":[" + queues + "],\"brokerDatas\":[" + datas + "]}";
    }

    static TopicPublishInfo publish(Object route) throws Exception {
        for (Method method : MQClientInstance.class.getMethods()) {
            if (method.getName().equals("topicRouteData2TopicPublishInfo")) {
                try {
                    return (TopicPublishInfo) method.invoke(null, TOPIC, route);
                } catch (InvocationTargetException e) {
                    throw (Exception) e.getCause();
                }
            }
        }
        throw new IllegalStateException();
    }

    static List<Object> pair(Object... items) {
        return new ArrayList<>(List.of(items));
    }

    static List<Object> named(MessageQueue queue) {
        return pair(queue.getBrokerName(), queue.getQueueId());
    }

    static List<Object> someBrokers(int most) {
        List<Object> brokers = new ArrayList<>();
        int count = 1 + random.nextInt(most);
        for (int i = 0; i < count; i++) {
            brokers.add(pair("b" + i, 1 + random.nextInt(4)));
        }
        return brokers;
    }

    static MQFaultStrategy strategy() throws Exception {
        Constructor<?> made = null;
        for (Constructor<?> constructor : MQFaultStrategy.class.getConstructors()) {
            if (constructor.getParameterCount() != 2) {
                made = constructor;
            }
        }
        return (MQFaultStrategy) (v4 ? made.newInstance() : made.newInstance(new ClientConfig(), null, null));
    }

    static MessageQueue select(MQFaultStrategy strategy, TopicPublishInfo info, String avoid, boolean restart)
        throws Exception {
        return (MessageQueue) (v4 ? call(strategy, "selectOneMessageQueue", info, avoid)
            : call(strategy, "selectOneMessageQueue", info, avoid, restart));
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> items(MQFaultStrategy strategy) throws Exception {
        return (Map<String, Object>) get(get(strategy, "latencyFaultTolerance"), "faultItemTable");
    }

    static void update(MQFaultStrategy strategy, String broker, long latency, boolean isolate, boolean reachable)
        throws Exception {
        if (v4) {
            call(strategy, "updateFaultItem", broker, latency, isolate);
        } else {
            call(strategy, "updateFaultItem", broker, latency, isolate, reachable);
        }
    }

    static int someIndex() {
        int[] corners = {0, -1, Integer.MAX_VALUE, Integer.MAX_VALUE - 1, Integer.MAX_VALUE - 3, Integer.MIN_VALUE};
        return random.nextInt(3) == 0 ? corners[random.nextInt(corners.length)] : random.nextInt();
    }

    // ---- what is asked of the classes -------------------------------------------------------

    static void hashes() {
        List<Object> keys = new ArrayList<>(List.of("", "a", "customer-7", "polygenelubricants", "Aa", "BB", "\u00e4\u00f6",
            "\u8ba2\u5355", "\ud83d\ude00", "a\u0000b", 0, 1, -1, 7, -7, Integer.MAX_VALUE, Integer.MIN_VALUE,
            Integer.MIN_VALUE + 1, 0L, 1L, -1L, -7L, 1L << 31, 1L << 32, (1L << 32) + 5, -(1L << 31) - 1,
            Long.MAX_VALUE, Long.MIN_VALUE, 2147483648L, -2147483649L, 1L << 62, true, false));
        for (int i = 0; i < 25; i++) {
            keys.add("order-" + random.nextInt(100000));
            keys.add(random.nextInt());
            keys.add(random.nextLong());
        }
        List<Integer> sizes = List.of(1, 2, 3, 4, 5, 7, 8, 16, 31, 100, 1000);
        for (Object key : keys) {
            List<Integer> picks = new ArrayList<>();
            for (int size : sizes) {
                List<MessageQueue> queues = new ArrayList<>();
                for (int i = 0; i < size; i++) {
                    queues.add(new MessageQueue(TOPIC, "b", i));
                }
                picks.add(new SelectMessageQueueByHash().select(queues, null, key).getQueueId());
            }
            emit("hash", "type", key.getClass().getSimpleName(), "key", key, "hash", key.hashCode(), "sizes", sizes,
                "picks", picks);
        }
    }

    static void indexes() throws Exception {
        for (int i = 0; i < 12; i++) {
            int start = i == 0 ? Integer.MAX_VALUE : someIndex();
            ThreadLocalIndex index = new ThreadLocalIndex();
            stand(index, start);
            List<Integer> turns = new ArrayList<>();
            for (int k = 0; k < 5; k++) {
                turns.add(index.incrementAndGet());
            }
            emit("index", "start", start, "turns", turns);
        }
    }

    static void turns() throws Exception {
        for (int i = 0; i < 60; i++) {
            List<Object> brokers = someBrokers(4);
            TopicPublishInfo info = publish(route(routeJson(brokers)));
            int start = someIndex();
            String avoid = random.nextInt(3) == 0 ? null : "b" + random.nextInt(brokers.size());
            stand(info.getSendWhichQueue(), start);
            MQFaultStrategy strategy = strategy();
            List<Object> picks = new ArrayList<>();
            for (int k = 0; k < 5; k++) {
                picks.add(named(select(strategy, info, avoid, true)));
            }
            emit("turn", "brokers", brokers, "start", start, "avoid", avoid, "picks", picks, "after",
                standing(info.getSendWhichQueue()));
        }
    }

    static void pauses() throws Exception {
        MQFaultStrategy table = strategy();
        List<Object> durations = new ArrayList<>();
        for (long latency : new long[] {0, 49, 50, 99, 100, 549, 550, 999, 1000, 1799, 1800, 1999, 2000, 2999, 3000,
            4999, 5000, 10000, 14999, 15000, 30000, 100000}) {
            durations.add(pair(latency, call(table, "computeNotAvailableDuration", latency)));
        }
        emit("pause", "durations", durations);
        long[] latencies = {0, 20, 60, 200, 600, 1200, 1900, 2500, 3500, 6000, 20000};
        long[] waits = {0, 500, 1500, 4000, 8000, 20000, 70000, 400000};
        for (int i = 0; i < 60; i++) {
            MQFaultStrategy strategy = strategy();
            strategy.setSendLatencyFaultEnable(true);
            List<Object> steps = new ArrayList<>();
            for (int k = 0; k < 6; k++) {
                long latency = latencies[random.nextInt(latencies.length)];
                long wait = waits[random.nextInt(waits.length)];
                boolean isolate = random.nextInt(3) == 0;
                boolean reachable = random.nextInt(3) != 0;
                Object item = items(strategy).get("b");
                if (item != null && (long) get(item, "startTimestamp") != 0) {
                    set(item, "startTimestamp", (long) get(item, "startTimestamp") - wait);
                }
                update(strategy, "b", latency, isolate, reachable);
                item = items(strategy).get("b");
                long start = (long) get(item, "startTimestamp");
                Long left = start == 0 ? null : Math.round((start - System.currentTimeMillis()) / 100.0) * 100;
                List<Object> step = pair(wait, latency, isolate, reachable);
                step.add(left);
                step.add(v4 || (boolean) get(item, "reachableFlag"));
                steps.add(step);
            }
            emit("update", "steps", steps);
        }
    }

    static void faults() throws Exception {
        for (int i = 0; i < 100; i++) {
            List<Object> brokers = someBrokers(4);
            MQFaultStrategy strategy = strategy();
            strategy.setSendLatencyFaultEnable(true);
            List<Object> known = new ArrayList<>();
            int style = random.nextInt(3);
            for (int b = 0; b < brokers.size() + 1; b++) {
                boolean outsider = b == brokers.size();
                if (outsider ? random.nextInt(4) != 0 : style == 0 && random.nextBoolean()) {
                    continue;
                }
                String name = outsider ? "elsewhere" : "b" + b;
                long latency = 10 + 10 * random.nextInt(50) + b;
                long left = (style == 2 || random.nextInt(3) == 0 ? 1 : -1) * (100000L + 1000 * random.nextInt(500));
                boolean reachable = random.nextInt(3) != 0;
                update(strategy, name, latency, false, reachable);
                Object item = items(strategy).get(name);
                set(item, "startTimestamp", System.currentTimeMillis() + left);
                known.add(pair(name, latency, left, reachable));
            }
            int worst = someIndex();
            stand((ThreadLocalIndex) get(get(strategy, "latencyFaultTolerance"), "whichItemWorst"), worst);
            int start = someIndex();
            int at = start;
            String avoid = random.nextInt(3) == 0 ? null : "b" + random.nextInt(brokers.size());
            Integer restart = !v4 && random.nextInt(3) == 0 ? random.nextInt(1000) : null;
            List<Object> picks = new ArrayList<>();
            for (int k = 0; k < 6; k++) {
                // A fresh list each time: 4.x overwrites queues in the list it picks from.
                TopicPublishInfo info = publish(route(routeJson(brokers)));
                stand(info.getSendWhichQueue(), at);
                if (restart != null) {
                    scriptRestarts(info.getSendWhichQueue(), List.of(restart));
                }
                picks.add(named(select(strategy, info, avoid, restart != null)));
                at = standing(info.getSendWhichQueue());
            }
            emit("fault", "brokers", brokers, "known", known, "worst", worst, "start", start, "avoid", avoid, "restart",
                restart, "picks", picks, "after", at, "left", new TreeSet<>(items(strategy).keySet()));
        }
    }

    static void routes() throws Exception {
        String[] orders = {"b0:2;b1:3", "b1:1;b0:2;", "b0:2;;b1:1", ";", ";;", "b0", "b0:", ":2", ":", "b0:x", "b0: 2", "b0:+2",
            "b0:-1", "b0:2:9", "b0:2147483648", "b0:02", " b0:1", "b0:1;b0:1", "b0:1_0", "b0:0x1", "b0:\u0662", "b0:1 ;"};
        for (int i = 0; i < 32 + orders.length; i++) {
            Map<String, Object> made = new TreeMap<>();
            made.put("orderTopicConf", i < orders.length ? orders[i] : i % 7 == 0 ? "" : null);
            List<Object> queues = new ArrayList<>();
            List<Object> datas = new ArrayList<>();
            String[] names = {"b0", "b1", "B2", "broker-10", "broker-9", "\u00e4", "\ud83d\ude00", "\uffee"};
            for (int k = random.nextInt(6); k > 0; k--) {
                Map<String, Object> queue = new TreeMap<>();
                queue.put("brokerName", names[random.nextInt(names.length)]);
                queue.put("perm", random.nextInt(3) == 0 ? random.nextInt(16) : 6);
                queue.put("readQueueNums", random.nextInt(5) - 1);
                queue.put("writeQueueNums", random.nextInt(5) - 1);
                queues.add(queue);
            }
            for (int k = random.nextInt(8); k > 0; k--) {
                Map<String, Object> addresses = new TreeMap<>();
                if (random.nextInt(5) != 0) {
                    addresses.put("0", random.nextInt(8) == 0 ? "" : "10.0.0.1:10911");
                }
                if (random.nextInt(3) == 0) {
                    addresses.put("1", "10.0.0.2:10911");
                }
                Map<String, Object> data = new TreeMap<>();
                data.put("brokerName", names[random.nextInt(names.length)]);
                data.put("cluster", "c");
                data.put("brokerAddrs", addresses);
                datas.add(data);
            }
            made.put("queueDatas", queues);
            made.put("brokerDatas", datas);
            String text = json(made);
            Object published;
            try {
                List<Object> list = new ArrayList<>();
                for (MessageQueue queue : publish(route(text)).getMessageQueueList()) {
                    list.add(named(queue));
                }
                published = list;
            } catch (RuntimeException e) {
                published = e.getClass().getSimpleName();
            }
            emit("route", "route", new Raw(text), "publish", published);
        }
    }

    // ---- the whole send, over a scripted network --------------------------------------------

    static class Script {
        String[] outcomes;
        int used = 0;
        List<Object> trace = new ArrayList<>();

        Object answer(String address, RemotingCommand request, long timeout, InvokeCallback callback) throws Exception {
            String outcome = outcomes[Math.min(used++, outcomes.length - 1)];
            Object header = request.readCustomHeader();
            int queueId = (int) call(header, "getE");
            trace.add(pair(address.split(":")[0], queueId, Math.round(timeout / 100.0) * 100));
            String[] parts = outcome.split("/");
            if (parts.length > 1) {
                Thread.sleep(Long.parseLong(parts[1]));
            }
            Exception failure = null;
            RemotingCommand response = null;
            switch (parts[0]) {
                case "timeout":
                    failure = new RemotingTimeoutException(address, timeout);
                    break;
                case "connect":
                    failure = new RemotingConnectException(address);
                    break;
                case "closed":
                    failure = new RemotingSendRequestException(address);
                    break;
                default:
                    response = RemotingCommand.createResponseCommand(Integer.parseInt(parts[0]), "scripted");
                    response.addExtField("msgId", "0A00000100002A9F0000000000000000");
                    response.addExtField("queueId", String.valueOf(queueId));
                    response.addExtField("queueOffset", "5");
            }
            if (callback == null) {
                if (failure != null) {
                    throw failure;
                }
                return response;
            }
            tell(callback, parts[0], failure, response, request, timeout);
            return null;
        }

        void tell(InvokeCallback callback, String outcome, Exception failure, RemotingCommand response,
            RemotingCommand request, long timeout) throws Exception {
            if (!v4) {
                if (failure == null) {
                    call(callback, "operationSucceed", response);
                } else {
                    call(callback, "operationFail", failure);
                }
                return;
            }
            if (outcome.equals("connect")) {
                throw failure;
            }
            Class<?> type = Class.forName("org.apache.rocketmq.remoting.netty.ResponseFuture");
            long patience = outcome.equals("timeout") ? -1 : timeout;
            Object future = type.getConstructors()[0].newInstance(null, request.getOpaque(), patience, callback, null);
            call(future, "setResponseCommand", response);
            call(future, "setSendRequestOK", !outcome.equals("closed"));
            callback.operationComplete((org.apache.rocketmq.remoting.netty.ResponseFuture) future);
        }
    }

    static class SameThread extends AbstractExecutorService {
        public void execute(Runnable task) {
            task.run();
        }

        public void shutdown() {
        }

        public List<Runnable> shutdownNow() {
            return List.of();
        }

        public boolean isShutdown() {
            return false;
        }

        public boolean isTerminated() {
            return false;
        }

        public boolean awaitTermination(long timeout, TimeUnit unit) {
            return true;
        }
    }

    static void sends() throws Exception {
        String[][] scripts = {
            {"0"}, {"10"}, {"11"}, {"12"}, {"10", "0"}, {"10", "11", "12"}, {"10", "timeout", "13"}, {"10", "13"},
            {"timeout"}, {"timeout", "0"}, {"timeout", "connect", "0"}, {"connect"}, {"closed"}, {"closed", "connect", "timeout"},
            {"1"}, {"1", "0"}, {"2", "0"}, {"3", "0"}, {"13", "0"}, {"14", "0"}, {"16", "0"}, {"17", "0"}, {"29", "0"}, {"204", "0"},
            {"205", "0"}, {"215", "0"}, {"1500", "0"}, {"timeout", "13"}, {"17", "17", "17"}, {"17", "timeout", "connect"},
        };
        for (String mode : new String[] {"sync", "async", "oneway"}) {
            for (boolean pinned : new boolean[] {false, true}) {
                for (String[] script : scripts) {
                    if (mode.equals("oneway") && !List.of("0", "timeout", "connect", "closed").contains(script[0])) {
                        continue;
                    }
                    send(how("mode", mode, "pinned", pinned), script);
                    if (mode.equals("sync") && !pinned) {
                        send(how("faults", true), script);
                        if (!v4 && !script[0].equals("0")) {
                            send(how("faults", true, "detector", true), script);
                        }
                        if (script[0].equals("10")) {
                            send(how("another", true), script);
                        }
                    }
                }
            }
        }
        String[][] slow = {{"timeout/600"}, {"17/430"}, {"10/700", "timeout/700"}, {"timeout/1300"}};
        for (String[] script : slow) {
            for (int perTry : v4 ? new int[] {-1} : new int[] {-1, 500}) {
                send(how("another", true, "retries", 3, "timeout", 1000, "per_try", perTry), script);
            }
        }
        List<Object> hidden = pair("b0", "b1");
        send(how("without_address", hidden), new String[] {"0"});
        send(how("without_address", hidden, "faults", true), new String[] {"0"});
        send(how("without_address", hidden, "mode", "async"), new String[] {"0"});
    }

    static Map<String, Object> how(Object... pairs) {
        Map<String, Object> how = new TreeMap<>();
        for (int i = 0; i < pairs.length; i += 2) {
            how.put((String) pairs[i], pairs[i + 1]);
        }
        return how;
    }

    @SuppressWarnings("unchecked")
    static void send(Map<String, Object> how, String[] outcomes) throws Exception {
        Script script = new Script();
        script.outcomes = outcomes;
        DefaultMQProducer producer = new DefaultMQProducer("g" + random.nextInt());
        producer.setRetryTimesWhenSendFailed((int) how.getOrDefault("retries", 2));
        producer.setRetryTimesWhenSendAsyncFailed((int) how.getOrDefault("retries", 2));
        producer.setRetryAnotherBrokerWhenNotStoreOK((boolean) how.getOrDefault("another", false));
        if (!v4) {
            call(producer, "setSendMsgMaxTimeoutPerRequest", (int) how.getOrDefault("per_try", -1));
        }
        DefaultMQProducerImpl inside = (DefaultMQProducerImpl) get(producer, "defaultMQProducerImpl");
        inside.setAsyncSenderExecutor(new SameThread());
        MQFaultStrategy strategy = (MQFaultStrategy) get(inside, "mqFaultStrategy");
        strategy.setSendLatencyFaultEnable((boolean) how.getOrDefault("faults", false));
        if (!v4) {
            call(strategy, "setStartDetectorEnable", (boolean) how.getOrDefault("detector", false));
        }
        MQClientInstance instance = new MQClientInstance(new ClientConfig(), 0, "id");
        Object network = Proxy.newProxyInstance(ProducerVectors.class.getClassLoader(), new Class<?>[] {RemotingClient.class},
            (proxy, method, arguments) -> {
                if (method.getName().equals("invokeSync") || method.getName().equals("invokeOneway")) {
                    Object answer = script.answer((String) arguments[0], (RemotingCommand) arguments[1], (long) arguments[2], null);
                    return method.getReturnType() == void.class ? null : answer;
                }
                if (method.getName().equals("invokeAsync")) {
                    script.answer((String) arguments[0], (RemotingCommand) arguments[1], (long) arguments[2],
                        (InvokeCallback) arguments[3]);
                }
                return null;
            });
        set(get(instance, "mQClientAPIImpl"), "remotingClient", network);
        set(inside, "mQClientFactory", instance);
        set(inside, "serviceState", ServiceState.RUNNING);
        List<Object> brokers = List.of(pair("b0", 2), pair("b1", 1), pair("b2", 2));
        List<Object> hidden = (List<Object>) how.getOrDefault("without_address", List.of());
        ConcurrentMap<String, HashMap<Long, String>> addresses =
            (ConcurrentMap<String, HashMap<Long, String>>) get(instance, "brokerAddrTable");
        for (Object broker : brokers) {
            String name = (String) ((List<?>) broker).get(0);
            if (!hidden.contains(name)) {
                HashMap<Long, String> own = new HashMap<>();
                own.put(0L, name + ":10911");
                addresses.put(name, own);
            }
        }
        TopicPublishInfo info = publish(route(routeJson(brokers)));
        int start = hidden.isEmpty() ? random.nextInt(1000) : 4;
        stand(info.getSendWhichQueue(), start);
        List<Integer> restarts = List.of(random.nextInt(1000), random.nextInt(1000), random.nextInt(1000));
        if (!v4) {
            scriptRestarts(info.getSendWhichQueue(), restarts);
        }
        ((ConcurrentMap<String, TopicPublishInfo>) get(inside, "topicPublishInfoTable")).put(TOPIC, info);
        Object result = result(producer, how, new MessageQueue(TOPIC, "b1", 0));
        Map<String, Object> table = new TreeMap<>();
        for (Map.Entry<String, Object> entry : items(strategy).entrySet()) {
            long until = (long) get(entry.getValue(), "startTimestamp");
            long left = Math.max(0, Math.round((until - System.currentTimeMillis()) / 1000.0));
            table.put(entry.getKey(), pair(left, v4 || (boolean) get(entry.getValue(), "reachableFlag")));
        }
        emit("send", "how", how, "script", List.of(outcomes), "start", start, "restarts", restarts, "trace", script.trace,
            "result", result, "table", table);
    }

    static Object result(DefaultMQProducer producer, Map<String, Object> how, MessageQueue chosen) throws Exception {
        Message message = new Message(TOPIC, new byte[] {1});
        long timeout = (int) how.getOrDefault("timeout", 3000);
        boolean pinned = (boolean) how.getOrDefault("pinned", false);
        List<Object> told = new ArrayList<>();
        SendCallback callback = new SendCallback() {
            public void onSuccess(SendResult result) {
                told.add(result);
            }

            public void onException(Throwable failure) {
                told.add(failure);
            }
        };
        try {
            switch ((String) how.getOrDefault("mode", "sync")) {
                case "sync":
                    told.add(pinned ? producer.send(message, chosen, timeout) : producer.send(message, timeout));
                    break;
                case "async":
                    if (pinned) {
                        producer.send(message, chosen, callback, timeout);
                    } else {
                        producer.send(message, callback, timeout);
                    }
                    break;
                default:
                    if (pinned) {
                        producer.sendOneway(message, chosen);
                    } else {
                        producer.sendOneway(message);
                    }
                    told.add(null);
            }
        } catch (Exception e) {
            told.add(e);
        }
        if (told.size() != 1) {
            throw new IllegalStateException("told " + told);
        }
        Object end = told.get(0);
        Map<String, Object> row = new TreeMap<>();
        if (end instanceof SendResult) {
            row.put("status", ((SendResult) end).getSendStatus().name());
        } else if (end != null) {
            row.put("error", end.getClass().getSimpleName());
            if (end instanceof MQClientException) {
                row.put("code", ((MQClientException) end).getResponseCode());
            } else if (end instanceof MQBrokerException) {
                row.put("code", ((MQBrokerException) end).getResponseCode());
            }
        }
        return row;
    }
}
