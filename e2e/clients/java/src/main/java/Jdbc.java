import java.math.BigDecimal;
import java.sql.BatchUpdateException;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Statement;
import java.sql.Timestamp;
import java.sql.Types;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Connector/J and MariaDB's connector: the same tests of both. The argument is mysql or mariadb. */
public final class Jdbc {
    private static String driver;
    private static String schema;

    private static Connection connect(String database, String options) throws Exception {
        String tls = driver.equals("mysql") ? "sslMode=PREFERRED&allowPublicKeyRetrieval=true" : "sslMode=trust";
        return DriverManager.getConnection("jdbc:" + driver + "://" + Check.HOST + ":" + Check.PORT + "/" + database + "?" + tls + options,
                Check.USER, Check.PASSWORD);
    }

    private static Connection connect(String options) throws Exception {
        return connect(schema, options);
    }

    public static void main(String[] args) {
        driver = args[0];
        schema = "jdbc_" + driver;
        Check.run("setup", Jdbc::setup);
        Check.run("values, text", () -> values("&useServerPrepStmts=false", "v1"));
        Check.run("values, prepared at the server", () -> values("&useServerPrepStmts=true&cachePrepStmts=true", "v2"));
        Check.run("batches", () -> batches("", "b1"));
        Check.run("batches, rewritten", () -> batches(driver.equals("mysql") ? "&rewriteBatchedStatements=true" : "&useBulkStmts=true", "b2"));
        Check.run("batches, prepared at the server", () -> batches("&useServerPrepStmts=true", "b3"));
        Check.run("transactions", Jdbc::transactions);
        Check.run("streams", Jdbc::streams);
        Check.run("tables and columns", Jdbc::tables);
        Check.run("keys", Jdbc::keys);
        Check.run("what the server can", Jdbc::server);
        Check.run("timeout of a query", Jdbc::timeout);
        Check.run("compression", Jdbc::compression);
        Check.end();
    }

    private static void setup() throws Exception {
        try (Connection c = connect("", ""); Statement s = c.createStatement()) {
            s.execute("DROP DATABASE IF EXISTS " + schema);
            s.execute("CREATE DATABASE " + schema);
        }
    }

    private static void values(String options, String table) throws Exception {
        try (Connection c = connect(options); Statement s = c.createStatement()) {
            s.execute("CREATE TABLE " + table + " (id INT PRIMARY KEY, b BOOLEAN, ti TINYINT, i INT, bi BIGINT, bu BIGINT UNSIGNED, d DECIMAL(30,10), f FLOAT,"
                    + " db DOUBLE, dt DATE, dtm DATETIME(6), ts TIMESTAMP(3) NULL, tm TIME(6), y YEAR, v VARCHAR(50), t LONGTEXT, bl LONGBLOB, vb VARBINARY(9),"
                    + " e ENUM('a','b'), st SET('a','b'), j JSON)");
            Object[] row = {true, -128, Integer.MIN_VALUE, Long.MIN_VALUE, new BigDecimal("18446744073709551615"), new BigDecimal("-12345678901234567890.0123456789"),
                    1.5f, -Double.MAX_VALUE, java.time.LocalDate.of(2024, 2, 29), java.time.LocalDateTime.of(9999, 12, 31, 23, 59, 59, 999999000),
                    Timestamp.valueOf("2024-02-29 12:34:56.789"), java.time.LocalTime.of(23, 59, 58), 2155, "it's \"ż\" \\ % \u0000", "🐙".repeat(9000),
                    new byte[] {0, 1, (byte) 255}, new byte[] {'\'', '\\', 0}, "b", "a,b", "{\"a\": [1, null]}"};
            String marks = ", ?".repeat(row.length);
            try (PreparedStatement p = c.prepareStatement("INSERT INTO " + table + " VALUES (?" + marks + ")")) {
                for (int id = 1; id <= 2; id++) {
                    p.setInt(1, id);
                    for (int i = 0; i < row.length; i++) {
                        if (id == 1) {
                            p.setObject(i + 2, row[i]);
                        } else {
                            p.setNull(i + 2, Types.NULL);
                        }
                    }
                    Check.equal(1, p.executeUpdate(), "rows");
                }
            }
            try (PreparedStatement p = c.prepareStatement("SELECT * FROM " + table + " WHERE id >= ? ORDER BY id")) {
                for (int again = 0; again < 5; again++) {
                    p.setInt(1, 1);
                    try (ResultSet r = p.executeQuery()) {
                        Check.equal(true, r.next(), "row");
                        Check.equal(List.of(true, (byte) -128, Integer.MIN_VALUE, Long.MIN_VALUE), List.of(r.getBoolean("b"), r.getByte("ti"), r.getInt("i"), r.getLong("bi")), "integers");
                        Check.equal(List.of(row[4], row[5], 1.5f, -Double.MAX_VALUE), List.of(r.getBigDecimal("bu"), r.getBigDecimal("d"), r.getFloat("f"), r.getDouble("db")), "numbers");
                        Check.equal(row[8], r.getObject("dt", java.time.LocalDate.class), "date");
                        Check.equal(row[9], r.getObject("dtm", java.time.LocalDateTime.class), "datetime");
                        Check.equal(row[10], r.getTimestamp("ts"), "timestamp");
                        Check.equal(row[11], r.getObject("tm", java.time.LocalTime.class), "time");
                        Check.equal(2155, r.getInt("y"), "year");
                        for (String[] x : new String[][] {{"v", "13"}, {"t", "14"}, {"e", "17"}, {"st", "18"}, {"j", "19"}}) {
                            Check.equal(row[Integer.parseInt(x[1])], r.getString(x[0]), x[0]);
                        }
                        Check.equal(true, Arrays.equals((byte[]) row[15], r.getBytes("bl")) && Arrays.equals((byte[]) row[16], r.getBytes("vb")), "bytes");
                        Check.equal(true, r.next(), "row of NULL");
                        for (int i = 2; i <= row.length + 1; i++) {
                            Check.equal(null, r.getObject(i), "NULL");
                        }
                    }
                }
            }
        }
    }

    private static void batches(String options, String table) throws Exception {
        try (Connection c = connect(options); Statement s = c.createStatement()) {
            s.execute("CREATE TABLE " + table + " (id INT PRIMARY KEY AUTO_INCREMENT, n INT UNIQUE, v VARCHAR(20))");
            c.setAutoCommit(false);
            try (PreparedStatement p = c.prepareStatement("INSERT INTO " + table + " (n, v) VALUES (?, ?)", Statement.RETURN_GENERATED_KEYS)) {
                for (int i = 0; i < 1000; i++) {
                    p.setInt(1, i);
                    p.setString(2, i % 10 == 0 ? null : "v" + i);
                    p.addBatch();
                }
                Check.equal(1000, p.executeBatch().length, "batch");
                if (!options.contains("Bulk")) {
                    List<Integer> keys = new ArrayList<>();
                    try (ResultSet r = p.getGeneratedKeys()) {
                        while (r.next()) {
                            keys.add(r.getInt(1));
                        }
                    }
                    Check.equal(List.of(1000, 1, 1000), List.of(keys.size(), keys.get(0), keys.get(999)), "keys");
                }
            }
            c.commit();
            try (ResultSet r = s.executeQuery("SELECT COUNT(*), COUNT(v), SUM(n) FROM " + table)) {
                r.next();
                Check.equal(List.of(1000, 900, 499500), List.of(r.getInt(1), r.getInt(2), r.getInt(3)), "rows");
            }
            try (PreparedStatement p = c.prepareStatement("UPDATE " + table + " SET v = ? WHERE n = ?")) {
                for (int i = 0; i < 50; i++) {
                    p.setString(1, "u");
                    p.setInt(2, i);
                    p.addBatch();
                }
                int[] counts = p.executeBatch();
                Check.equal(50, counts.length, "updates");
            }
            c.commit();
            try (PreparedStatement p = c.prepareStatement("INSERT INTO " + table + " (n, v) VALUES (?, ?)")) {
                for (int n : new int[] {2000, 5, 2001}) {
                    p.setInt(1, n);
                    p.setString(2, "d");
                    p.addBatch();
                }
                try {
                    p.executeBatch();
                    throw new AssertionError("a duplicate was taken");
                } catch (BatchUpdateException e) {
                    Check.equal(1062, e.getErrorCode(), e.getMessage());
                }
            }
            c.rollback();
            try (ResultSet r = s.executeQuery("SELECT COUNT(*) FROM " + table + " WHERE v IN ('u', 'd')")) {
                r.next();
                Check.equal(50, r.getInt(1), "what was updated stays, what failed is not there");
            }
            c.commit();
        }
    }

    private static void transactions() throws Exception {
        try (Connection a = connect(""); Connection b = connect(""); Statement x = a.createStatement(); Statement y = b.createStatement()) {
            x.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)");
            for (int level : new int[] {Connection.TRANSACTION_READ_COMMITTED, Connection.TRANSACTION_REPEATABLE_READ, Connection.TRANSACTION_SERIALIZABLE}) {
                a.setTransactionIsolation(level);
                Check.equal(level, a.getTransactionIsolation(), "isolation");
            }
            a.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            a.setAutoCommit(false);
            x.executeUpdate("INSERT INTO t VALUES (1, 1)");
            java.sql.Savepoint save = a.setSavepoint("here");
            x.executeUpdate("INSERT INTO t VALUES (2, 2)");
            a.rollback(save);
            try (ResultSet r = y.executeQuery("SELECT COUNT(*) FROM t")) {
                r.next();
                Check.equal(0, r.getInt(1), "not committed");
            }
            a.commit();
            y.execute("SET SESSION TRANSACTION READ ONLY");
            Check.raises(1792, () -> y.executeUpdate("INSERT INTO t VALUES (3, 3)"));
            y.execute("SET SESSION TRANSACTION READ WRITE");
            try (ResultSet r = y.executeQuery("SELECT id FROM t FOR UPDATE")) {
                r.next();
                Check.equal(1, r.getInt(1), "row");
                Check.equal(false, r.next(), "one row");
            }
            Check.equal(true, a.isValid(5), "valid");
            Check.equal(schema, a.getCatalog(), "catalog");
        }
    }

    private static void streams() throws Exception {
        try (Connection c = connect("&useCursorFetch=true"); Statement s = c.createStatement()) {
            s.execute("CREATE TABLE many (id INT PRIMARY KEY)");
            StringBuilder b = new StringBuilder("INSERT INTO many VALUES (0)");
            for (int i = 1; i < 5000; i++) {
                b.append(",(").append(i).append(')');
            }
            s.execute(b.toString());
            try (PreparedStatement p = c.prepareStatement("SELECT id FROM many WHERE id >= ? ORDER BY id")) {
                p.setFetchSize(100);
                p.setInt(1, 10);
                try (ResultSet r = p.executeQuery()) {
                    for (int i = 10; i < 5000; i++) {
                        r.next();
                        Check.equal(i, r.getInt(1), "cursor");
                    }
                    Check.equal(false, r.next(), "end");
                }
            }
        }
    }

    private static List<String> list(ResultSet r, String... columns) throws Exception {
        List<String> all = new ArrayList<>();
        try (r) {
            while (r.next()) {
                StringBuilder line = new StringBuilder();
                for (String c : columns) {
                    line.append(line.length() > 0 ? " " : "").append(r.getString(c));
                }
                all.add(line.toString());
            }
        }
        return all;
    }

    private static void tables() throws Exception {
        try (Connection c = connect(""); Statement s = c.createStatement()) {
            s.execute("CREATE TABLE meta (id INT UNSIGNED NOT NULL AUTO_INCREMENT, name VARCHAR(30) NOT NULL DEFAULT 'x' COMMENT 'what', d DECIMAL(10,3), dt DATETIME(3),"
                    + " twice INT AS (flag + 1) VIRTUAL, flag TINYINT(1), t TEXT, b BLOB, PRIMARY KEY (id), UNIQUE KEY un (name), KEY dd (d, dt))");
            s.execute("CREATE VIEW metaview AS SELECT id, name FROM meta");
            var m = c.getMetaData();
            Check.equal(List.of("meta TABLE", "metaview VIEW"), list(m.getTables(schema, null, "meta%", new String[] {"TABLE", "BASE TABLE", "VIEW"}), "TABLE_NAME", "TABLE_TYPE")
                    .stream().map(t -> t.replace("BASE TABLE", "TABLE")).toList(), "tables");
            List<String> columns = list(m.getColumns(schema, null, "meta", "%"), "COLUMN_NAME", "DATA_TYPE", "COLUMN_SIZE", "DECIMAL_DIGITS", "NULLABLE", "COLUMN_DEF", "REMARKS",
                    "ORDINAL_POSITION", "IS_AUTOINCREMENT", "IS_GENERATEDCOLUMN");
            Check.equal(8, columns.size(), "columns " + columns);
            Check.equal("name 12 30 null 0 x what 2 NO NO", columns.get(1), "column");
            Check.equal("d 3 10 3 1 null  3 NO NO", columns.get(2), "column");
            Check.equal("id " + Types.INTEGER + " 10", columns.get(0).substring(0, 7), "column");
            Check.equal(true, columns.get(0).endsWith("YES NO") && columns.get(4).endsWith("NO YES"), "generated: " + columns);
            Check.equal(true, list(m.getCatalogs(), "TABLE_CAT").contains(schema), "catalogs");
            Check.equal(true, list(m.getTypeInfo(), "TYPE_NAME").contains("BIGINT"), "types");
            try (ResultSet r = s.executeQuery("SELECT m.id, m.name AS n, COUNT(*) c, 1.5 FROM meta m GROUP BY m.id")) {
                var rm = r.getMetaData();
                Check.equal("id id meta " + schema, rm.getColumnLabel(1) + " " + rm.getColumnName(1) + " " + rm.getTableName(1) + " " + rm.getCatalogName(1), "result");
                Check.equal("n name", rm.getColumnLabel(2) + " " + rm.getColumnName(2), "result");
                Check.equal(List.of(Types.VARCHAR, Types.BIGINT, Types.DECIMAL), List.of(rm.getColumnType(2), rm.getColumnType(3), rm.getColumnType(4)), "types of a result");
            }
            try (ResultSet r = s.executeQuery("SELECT id, name FROM meta")) {
                var rm = r.getMetaData();
                Check.equal(List.of(true, false, 0), List.of(rm.isAutoIncrement(1), rm.isSigned(1), rm.isNullable(2)), "flags");
            }
        }
    }

    private static void keys() throws Exception {
        try (Connection c = connect(""); Statement s = c.createStatement()) {
            s.execute("CREATE TABLE parent (a INT, b INT, PRIMARY KEY (b, a))");
            s.execute("CREATE TABLE child (id BIGINT PRIMARY KEY, pb INT, pa INT, UNIQUE KEY both_ (pa, pb), KEY fk (pb, pa), CONSTRAINT of_parent FOREIGN KEY (pb, pa)"
                    + " REFERENCES parent (b, a) ON DELETE CASCADE ON UPDATE SET NULL)");
            var m = c.getMetaData();
            Check.equal(List.of("a 2 PRIMARY", "b 1 PRIMARY"), list(m.getPrimaryKeys(schema, null, "parent"), "COLUMN_NAME", "KEY_SEQ", "PK_NAME"), "primary key");
            List<String> indexes = list(m.getIndexInfo(schema, null, "child", false, true), "NON_UNIQUE", "INDEX_NAME", "ORDINAL_POSITION", "COLUMN_NAME")
                    .stream().map(l -> l.replace("true", "1").replace("false", "0")).sorted().toList();
            Check.equal(List.of("0 PRIMARY 1 id", "0 both_ 1 pa", "0 both_ 2 pb", "1 fk 1 pb", "1 fk 2 pa"), indexes, "indexes");
            List<String> want = List.of("parent b child pb 1 2 0 of_parent", "parent a child pa 2 2 0 of_parent");
            String[] of = {"PKTABLE_NAME", "PKCOLUMN_NAME", "FKTABLE_NAME", "FKCOLUMN_NAME", "KEY_SEQ", "UPDATE_RULE", "DELETE_RULE", "FK_NAME"};
            Check.equal(want, list(m.getImportedKeys(schema, null, "child"), of), "imported keys");
            Check.equal(want, list(m.getExportedKeys(schema, null, "parent"), of), "exported keys");
            Check.equal(want, list(m.getCrossReference(schema, null, "parent", schema, null, "child"), of), "cross reference");
            Check.raises(1452, () -> s.executeUpdate("INSERT INTO child VALUES (1, 1, 1)"));
        }
    }

    private static void server() throws Exception {
        try (Connection c = connect("")) {
            var m = c.getMetaData();
            Check.equal(8, m.getDatabaseMajorVersion(), "version " + m.getDatabaseProductVersion());
            Check.equal(true, m.supportsTransactions() && m.supportsSavepoints() && m.supportsBatchUpdates(), "supports");
            Check.equal(true, m.getUserName().startsWith("root"), m.getUserName());
            m.getSchemas().close();
            m.getProcedures(schema, null, "%").close();
            m.getFunctions(schema, null, "%").close();
            m.getTablePrivileges(schema, null, "%").close();
            m.getColumnPrivileges(schema, null, "meta", "%").close();
            m.getBestRowIdentifier(schema, null, "meta", 1, true).close();
            m.getVersionColumns(schema, null, "meta").close();
            m.getClientInfoProperties().close();
            c.setNetworkTimeout(Runnable::run, 5000);
        }
    }

    private static void timeout() throws Exception {
        try (Connection c = connect(""); Statement s = c.createStatement()) {
            s.setQueryTimeout(1);
            long began = System.nanoTime();
            try (ResultSet r = s.executeQuery("SELECT SLEEP(20)")) {
                r.next();
            } catch (java.sql.SQLException e) {
                // MySQL's SLEEP returns 1 when it is ended; either is well
            }
            Check.equal(true, System.nanoTime() - began < 10_000_000_000L, "the query was ended");
            s.setQueryTimeout(0);
            try (ResultSet r = s.executeQuery("SELECT 1")) {
                r.next();
                Check.equal(1, r.getInt(1), "the connection is of use");
            }
        }
    }

    private static void compression() throws Exception {
        try (Connection c = connect("&useCompression=true"); Statement s = c.createStatement(); ResultSet r = s.executeQuery("SELECT REPEAT('x', 300000)")) {
            r.next();
            Check.equal(300000, r.getString(1).length(), "text");
        }
    }
}
