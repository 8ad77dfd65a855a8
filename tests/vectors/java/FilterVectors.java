// Answers filter questions with RocketMQ's own classes: one JSON line in, one JSON line out.
//
//   python filter_questions.py table  | java -cp 'rocketmq-5.5.0/lib/*' FilterVectors.java > ../java-sql92.jsonl
//   python filter_questions.py random | java -cp 'rocketmq-5.5.0/lib/*' FilterVectors.java > ../java-sql92-random.jsonl
//   python filter_questions.py tags   | java -cp 'rocketmq-5.5.0/lib/*' FilterVectors.java > ../java-subscriptions.jsonl
//
// The first line tells what follows: {"maps": [...]} SQL92 expressions, evaluated over each map;
// {"maps": [...], "brief": true} the same, answers only; {"tags": true} subscriptions.
// A value is T(rue), F(alse), N(ull) or ! (an exception); the broker's decision is 1 or 0.

import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.rocketmq.broker.filter.ConsumerFilterData;
import org.apache.rocketmq.broker.filter.ConsumerFilterManager;
import org.apache.rocketmq.broker.filter.ExpressionMessageFilter;
import org.apache.rocketmq.broker.filter.MessageEvaluationContext;
import org.apache.rocketmq.filter.expression.BooleanExpression;
import org.apache.rocketmq.filter.parser.SelectorParser;

public class FilterVectors {
    static PrintStream out;

    public static void main(String[] args) throws Exception {
        out = new PrintStream(System.out, false, "UTF-8");
        System.setOut(System.err); // logging, if any
        manager = new ConsumerFilterManager();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        JSONObject head = JSON.parseObject(in.readLine());
        boolean tags = head.getBooleanValue("tags");
        boolean brief = head.getBooleanValue("brief");
        List<Map<String, String>> maps = new ArrayList<>();
        if (!tags) {
            for (Object each : head.getJSONArray("maps")) {
                Map<String, String> map = new LinkedHashMap<>();
                ((JSONObject) each).forEach((name, value) -> map.put(name, (String) value));
                maps.add(map);
            }
            out.println(JSON.toJSONString(head));
        }
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Object question = JSON.parse(line);
            if (tags) {
                subscription((JSONArray) question);
            } else {
                expression((String) question, maps, brief);
            }
        }
        out.flush();
        System.exit(0);
    }

    static void expression(String text, List<Map<String, String>> maps, boolean brief) throws Exception {
        BooleanExpression compiled = null;
        String refused = null;
        try {
            compiled = SelectorParser.parse(text);
        } catch (Throwable e) {
            Throwable cause = e.getCause() == null ? e : e.getCause();
            refused = cause.getClass().getSimpleName();
        }
        StringBuilder values = new StringBuilder();
        StringBuilder delivered = new StringBuilder();
        if (compiled != null) {
            for (Map<String, String> map : maps) {
                values.append(value(compiled, map));
                delivered.append(decision(text, map) ? '1' : '0');
            }
        }
        if (brief) {
            JSONArray answer = new JSONArray();
            answer.add(text);
            answer.add(compiled == null ? null : values.toString());
            out.println(JSON.toJSONString(answer, com.alibaba.fastjson.serializer.SerializerFeature.WriteMapNullValue));
            return;
        }
        JSONObject answer = new JSONObject(true);
        answer.put("expression", text);
        if (compiled == null) {
            answer.put("refused", refused);
        } else {
            answer.put("values", values.toString());
            answer.put("delivered", delivered.toString());
        }
        out.println(JSON.toJSONString(answer));
    }

    static char value(BooleanExpression compiled, Map<String, String> map) {
        Object value;
        try {
            value = compiled.evaluate(new MessageEvaluationContext(map));
        } catch (Throwable e) {
            return '!';
        }
        return value == null ? 'N' : (Boolean) value ? 'T' : 'F';
    }

    static ConsumerFilterManager manager; // made late: it logs where standard output then goes
    static ExpressionMessageFilter current;
    static String currentText;

    static boolean decision(String text, Map<String, String> map) throws Exception {
        if (!text.equals(currentText)) {
            ConsumerFilterData data = ConsumerFilterManager.build("T", "G", text, "SQL92", 1L);
            Object subscription = build("T", text, "SQL92");
            Constructor<?> constructor = ExpressionMessageFilter.class.getConstructors()[0];
            current = (ExpressionMessageFilter) constructor.newInstance(subscription, data, manager);
            currentText = text;
        }
        return current.isMatchedByCommitLog((ByteBuffer) null, map);
    }

    static void subscription(JSONArray question) throws Exception {
        String text = question.getString(0);
        String kind = question.getString(1);
        JSONObject answer = new JSONObject(true);
        answer.put("expression", text);
        answer.put("kind", kind);
        try {
            JSONObject built = (JSONObject) JSON.toJSON(build("T", text, kind));
            answer.put("subString", built.get("subString"));
            answer.put("expressionType", built.get("expressionType"));
            answer.put("tagsSet", new TreeSet<Object>(built.getJSONArray("tagsSet")));
            answer.put("codeSet", new TreeSet<Object>(built.getJSONArray("codeSet")));
        } catch (InvocationTargetException e) {
            answer.put("refused", e.getCause().getClass().getSimpleName());
        }
        out.println(JSON.toJSONString(answer, com.alibaba.fastjson.serializer.SerializerFeature.WriteMapNullValue));
    }

    // The class moved between 4.x and 5.x.
    static Object build(String topic, String text, String kind) throws Exception {
        Class<?> api;
        try {
            api = Class.forName("org.apache.rocketmq.remoting.protocol.filter.FilterAPI");
        } catch (ClassNotFoundException e) {
            api = Class.forName("org.apache.rocketmq.common.filter.FilterAPI");
        }
        Method build = api.getMethod("build", String.class, String.class, String.class);
        return build.invoke(null, topic, text, kind);
    }
}
