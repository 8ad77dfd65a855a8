// Prints RocketMQ's request codes, response codes and version numbers as one JSON object.
//
//   java -cp 'rocketmq-5.5.0/lib/*' CodeTables.java > ../java-codes-5.5.0.json
//   java -cp 'rocketmq-4.9.7/lib/*' CodeTables.java > ../java-codes-4.9.7.json

import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.serializer.SerializerFeature;
import java.lang.reflect.Field;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.common.MQVersion;

public class CodeTables {
    public static void main(String[] args) throws Exception {
        Map<String, Map<String, Integer>> tables = new TreeMap<>();
        for (String name : new String[] {"RequestCode", "ResponseCode"}) {
            Map<String, Integer> table = new TreeMap<>();
            for (Field field : find(name).getFields()) { // those of RemotingSysResponseCode too
                if (field.getType() == int.class) {
                    table.put(field.getName(), field.getInt(null));
                }
            }
            tables.put(name, table);
        }
        Map<String, Integer> versions = new TreeMap<>();
        for (MQVersion.Version version : MQVersion.Version.values()) {
            versions.put(version.name(), version.ordinal());
        }
        tables.put("Version", versions);
        System.out.println(JSON.toJSONString(tables, SerializerFeature.PrettyFormat));
    }

    static Class<?> find(String name) throws ClassNotFoundException {
        try {
            return Class.forName("org.apache.rocketmq.remoting.protocol." + name);
        } catch (ClassNotFoundException e) {
            return Class.forName("org.apache.rocketmq.common.protocol." + name); // 4.x
        }
    }
}
