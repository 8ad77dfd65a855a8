import java.io.File;
import java.lang.annotation.Annotation;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;

/**
 * Lists the fields of every request and response header class of a RocketMQ release.
 *
 * Run once for each release: java -cp "rocketmq-5.5.0/*" HeaderFields.java
 * Prints one JSON object: class name -> {"action": request code or null, "fields": {name -> {...}}}.
 * "required" tells whether the field carries CFNotNull; "initial" is the value a fresh header
 * would write, absent when it writes none, or another one each time (a clock).
 * java-headers.json holds these objects by release.
 */
public class HeaderFields {
    static final String ROOT = "org.apache.rocketmq.remoting.CommandCustomHeader";

    public static void main(String[] args) throws Exception {
        Class<?> root = Class.forName(ROOT);
        Map<String, String> lines = new TreeMap<>();
        for (String entry : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (!new File(entry).getName().startsWith("rocketmq-")) continue;
            try (JarFile jar = new JarFile(entry)) {
                for (JarEntry file : Collections.list(jar.entries())) {
                    String name = file.getName();
                    if (!name.endsWith(".class") || !name.contains("Header")) continue;
                    Class<?> found;
                    try {
                        found = Class.forName(name.replace('/', '.').replace(".class", ""), false,
                            HeaderFields.class.getClassLoader());
                    } catch (LinkageError unrelated) {
                        continue;
                    }
                    if (!root.isAssignableFrom(found) || found.isInterface()) continue;
                    if (Modifier.isAbstract(found.getModifiers())) continue;
                    lines.put(found.getSimpleName(), describe(found));
                }
            }
        }
        List<String> rows = new ArrayList<>();
        lines.forEach((name, text) -> rows.add("  " + quote(name) + ": " + text));
        System.out.println("{\n" + String.join(",\n", rows) + "\n}");
    }

    static String describe(Class<?> header) throws Exception {
        Object fresh = null, later = null;
        try {
            Constructor<?> plain = header.getDeclaredConstructor();
            plain.setAccessible(true);
            fresh = plain.newInstance();
            Thread.sleep(3);
            later = plain.newInstance();
        } catch (NoSuchMethodException none) {
            // A header that is only ever written.
        }
        Map<String, String> fields = new LinkedHashMap<>();
        List<Class<?>> family = new ArrayList<>();
        for (Class<?> c = header; c != Object.class; c = c.getSuperclass()) family.add(0, c);
        for (Class<?> c : family) {
            for (Field field : c.getDeclaredFields()) {
                if (Modifier.isStatic(field.getModifiers()) || field.isSynthetic()) continue;
                field.setAccessible(true);
                Object initial = fresh == null ? null : field.get(fresh);
                if (initial != null && !initial.equals(field.get(later))) initial = null;
                fields.put(field.getName(), "{\"type\": " + quote(typeName(field.getType()))
                    + ", \"required\": " + has(field.getAnnotations(), "CFNotNull")
                    + (initial == null ? "" : ", \"initial\": " + quote(initial.toString())) + "}");
            }
        }
        List<String> cells = new ArrayList<>();
        fields.forEach((name, text) -> cells.add(quote(name) + ": " + text));
        return "{\"action\": " + action(header) + ", \"fields\": {" + String.join(", ", cells) + "}}";
    }

    static String typeName(Class<?> type) {
        return type.isEnum() ? "enum " + type.getSimpleName() : type.getSimpleName();
    }

    static boolean has(Annotation[] annotations, String name) {
        for (Annotation each : annotations) {
            if (each.annotationType().getSimpleName().equals(name)) return true;
        }
        return false;
    }

    static String action(Class<?> header) throws Exception {
        for (Annotation each : header.getAnnotations()) {
            if (each.annotationType().getSimpleName().equals("RocketMQAction")) {
                Method value = each.annotationType().getMethod("value");
                return value.invoke(each).toString();
            }
        }
        return "null";
    }

    static String quote(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }
}
