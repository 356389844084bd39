import java.util.Objects;

/** What the programs share: the server's address, and tests one after the other. */
final class Check {
    static final String HOST = System.getenv("TRIREME_HOST");
    static final String PORT = System.getenv("TRIREME_PORT");
    static final String USER = System.getenv("TRIREME_USER");
    static final String PASSWORD = System.getenv("TRIREME_PASSWORD");

    private static int failed;

    interface Test {
        void run() throws Exception;
    }

    private Check() {}

    static void equal(Object want, Object got, String what) {
        if (!Objects.equals(want, got)) {
            throw new AssertionError(what + "\n  got:  " + got + "\n  want: " + want);
        }
    }

    /** The test has to fail with this error number of the server. */
    static void raises(int number, Test test) throws Exception {
        try {
            test.run();
        } catch (java.sql.SQLException e) {
            equal(number, e.getErrorCode(), "error: " + e.getMessage());
            return;
        }
        throw new AssertionError("no error " + number);
    }

    static void run(String name, Test test) {
        try {
            test.run();
            System.out.println("ok   " + name);
        } catch (Throwable e) {
            failed++;
            System.out.println("FAIL " + name);
            e.printStackTrace(System.out);
        }
    }

    static void end() {
        System.exit(failed == 0 ? 0 : 1);
    }
}
