/**
 * Wakes a sleeper that a client waits for when it ends: the thread of its network events looks only
 * every three seconds whether it is over, and mqadmin makes and ends a client for each command.
 */
public class Awake {
    /**
     * Does so from now on for all clients that the calling thread ends. If that thread fails, so does the
     * process: the threads of a client would keep it alive, and a test would wait for it in vain.
     */
    public static void start() {
        Thread ending = Thread.currentThread();
        ending.setUncaughtExceptionHandler((thread, failure) -> {
            failure.printStackTrace();
            Runtime.getRuntime().halt(1);
        });
        Thread waking = new Thread(() -> {
            while (true) {
                try {
                    Thread.sleep(20);
                } catch (InterruptedException over) {
                    return;
                }
                // It joins a thread then. To ask for a stack stops all threads, so first for the state.
                if (ending.getState() == Thread.State.TIMED_WAITING
                    && within(ending, "ServiceThread", "shutdown")) {
                    wake();
                }
            }
        });
        waking.setDaemon(true);
        waking.start();
    }

    static boolean within(Thread thread, String kind, String method) {
        for (StackTraceElement each : thread.getStackTrace()) {
            if (each.getMethodName().equals(method) && each.getClassName().endsWith(kind)) {
                return true;
            }
        }
        return false;
    }

    static void wake() {
        Thread[] threads = new Thread[2 * Thread.activeCount() + 16];
        int count = Thread.enumerate(threads);
        for (int n = 0; n < count; n++) {
            if (threads[n].getName().startsWith("NettyEventExecutor") && within(threads[n], "Queue", "poll")) {
                threads[n].interrupt();
            }
        }
    }
}
