import com.github.shyiko.mysql.binlog.BinaryLogFileReader;
import com.github.shyiko.mysql.binlog.event.*;
import com.github.shyiko.mysql.binlog.event.deserialization.ColumnType;
import com.github.shyiko.mysql.binlog.event.deserialization.EventDeserializer;
import com.github.shyiko.mysql.binlog.event.deserialization.EventDeserializer.CompatibilityMode;
import com.github.shyiko.mysql.binlog.event.deserialization.json.JsonBinary;
import java.io.File;
import java.io.IOException;
import java.io.PrintStream;
import java.io.Serializable;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.*;

/** Prints what is in a binlog file, see ../README.md. */
public class BinlogDecode {
    private final PrintStream out;
    private final Map<Long, TableMapEventData> tables = new HashMap<>();

    private BinlogDecode(PrintStream out) { this.out = out; }

    public static void main(String[] args) throws IOException {
        EventDeserializer deserializer = new EventDeserializer();
        deserializer.setCompatibilityMode(CompatibilityMode.DATE_AND_TIME_AS_LONG_MICRO,
            CompatibilityMode.INVALID_DATE_AND_TIME_AS_MIN_VALUE, CompatibilityMode.CHAR_AND_BINARY_AS_BYTE_ARRAY);
        PrintStream out = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false, "UTF-8");
        BinlogDecode decode = new BinlogDecode(new PrintStream(new java.io.BufferedOutputStream(out, 1 << 16), false, "UTF-8"));
        try (BinaryLogFileReader reader = new BinaryLogFileReader(new File(args[0]), deserializer)) {
            for (Event e; (e = reader.readEvent()) != null; ) {
                decode.print(e);
            }
        }
        decode.out.flush();
    }

    private void print(Event e) throws IOException {
        EventHeaderV4 h = e.getHeader();
        String at = Long.toString(h.getNextPosition());
        EventData data = e.getData();
        out.print(at + " ");
        switch (h.getEventType()) {
            case FORMAT_DESCRIPTION: {
                FormatDescriptionEventData d = (FormatDescriptionEventData) data;
                out.println("FORMAT " + d.getBinlogVersion() + " " + d.getServerVersion() + " " + d.getChecksumType());
                break;
            }
            case PREVIOUS_GTIDS:
                out.println("PREVIOUS " + ((PreviousGtidSetEventData) data).getGtidSet());
                break;
            case GTID: {
                GtidEventData d = (GtidEventData) data;
                out.println("GTID " + d.getMySqlGtid() + " flags=" + d.getFlags() + " clock=" + d.getLastCommitted() + "," +
                    d.getSequenceNumber() + " time=" + d.getImmediateCommitTimestamp() + "," + d.getOriginalCommitTimestamp() +
                    " length=" + d.getTransactionLength() + " version=" + d.getImmediateServerVersion() + "," +
                    d.getOriginalServerVersion());
                break;
            }
            case QUERY: {
                QueryEventData d = (QueryEventData) data;
                out.println("QUERY schema=" + d.getDatabase() + " thread=" + d.getThreadId() + " seconds=" + d.getExecutionTime() +
                    " error=" + d.getErrorCode() + " text=" + d.getSql());
                break;
            }
            case XID:
                out.println("XID " + ((XidEventData) data).getXid());
                break;
            case ROTATE: {
                RotateEventData d = (RotateEventData) data;
                out.println("ROTATE " + d.getBinlogFilename() + " " + d.getBinlogPosition());
                break;
            }
            case TABLE_MAP:
                tableMap(at, (TableMapEventData) data);
                break;
            case EXT_WRITE_ROWS: {
                WriteRowsEventData d = (WriteRowsEventData) data;
                out.println("WRITE " + d.getTableId());
                for (Serializable[] row : d.getRows()) {
                    image(at, "row", d.getTableId(), d.getIncludedColumns(), row);
                }
                break;
            }
            case EXT_DELETE_ROWS: {
                DeleteRowsEventData d = (DeleteRowsEventData) data;
                out.println("DELETE " + d.getTableId());
                for (Serializable[] row : d.getRows()) {
                    image(at, "row", d.getTableId(), d.getIncludedColumns(), row);
                }
                break;
            }
            case EXT_UPDATE_ROWS: {
                UpdateRowsEventData d = (UpdateRowsEventData) data;
                out.println("UPDATE " + d.getTableId());
                for (Map.Entry<Serializable[], Serializable[]> row : d.getRows()) {
                    image(at, "before", d.getTableId(), d.getIncludedColumnsBeforeUpdate(), row.getKey());
                    image(at, "after", d.getTableId(), d.getIncludedColumns(), row.getValue());
                }
                break;
            }
            default:
                out.println(h.getEventType());
        }
    }

    private void tableMap(String at, TableMapEventData d) {
        tables.put(d.getTableId(), d);
        byte[] types = d.getColumnTypes();
        out.println("TABLE " + d.getTableId() + " " + d.getDatabase() + "." + d.getTable() + " " + types.length);
        TableMapEventMetadata m = d.getEventMetadata();
        int strings = 0, members = 0, enums = 0, sets = 0;
        for (int i = 0; i < types.length; i++) {
            int type = typeOf(d, i);
            StringBuilder s = new StringBuilder(at + " column " + i + " type=" + type + " null=" + bit(d.getColumnNullability().get(i)));
            if (isNumber(type)) {
                s.append(" unsigned=").append(bit(m.getSignedness().get(i)));
            } else if (isString(type)) {
                s.append(" charset=").append(charset(m.getDefaultCharset(), m.getColumnCharsets(), strings++));
            }
            if (m.getColumnNames() != null) {
                boolean isEnum = type == ColumnType.ENUM.getCode(), isSet = type == ColumnType.SET.getCode();
                if (isEnum || isSet) {
                    s.append(" charset=").append(charset(m.getEnumAndSetDefaultCharset(), m.getEnumAndSetColumnCharsets(), members++));
                    String[] names = isEnum ? m.getEnumStrValues().get(enums++) : m.getSetStrValues().get(sets++);
                    s.append(" members=").append(String.join("|", names));
                }
                s.append(" name=").append(m.getColumnNames().get(i)).append(" visible=").append(bit(m.getVisibility().get(i)));
                if (m.getSimplePrimaryKeys() != null && m.getSimplePrimaryKeys().contains(i)) {
                    s.append(" key=0");
                } else if (m.getPrimaryKeysWithPrefix() != null && m.getPrimaryKeysWithPrefix().containsKey(i)) {
                    s.append(" key=").append(m.getPrimaryKeysWithPrefix().get(i));
                }
            }
            out.println(s);
        }
    }

    private static int charset(TableMapEventMetadata.DefaultCharset d, List<Integer> each, int i) {
        if (d == null) {
            return each.get(i);
        }
        Map<Integer, Integer> others = d.getCharsetCollations();
        return others != null && others.containsKey(i) ? others.get(i) : d.getDefaultCharsetCollation();
    }

    private static int bit(boolean b) { return b ? 1 : 0; }

    /** The type of a column, with ENUM and SET told from strings. */
    private static int typeOf(TableMapEventData d, int i) {
        int type = d.getColumnTypes()[i] & 0xff, meta = d.getColumnMetadata()[i];
        if (type == ColumnType.STRING.getCode() &&
            (meta >> 8 == ColumnType.ENUM.getCode() || meta >> 8 == ColumnType.SET.getCode())) {
            return meta >> 8;
        }
        return type;
    }

    private static boolean isNumber(int type) {
        switch (ColumnType.byCode(type)) {
            case TINY: case SHORT: case INT24: case LONG: case LONGLONG: case NEWDECIMAL: case FLOAT: case DOUBLE: case YEAR:
                return true;
            default:
                return false;
        }
    }

    private static boolean isString(int type) {
        switch (ColumnType.byCode(type)) {
            case STRING: case VARCHAR: case VAR_STRING: case BLOB:
                return true;
            default:
                return false;
        }
    }

    private void image(String at, String what, long table, BitSet included, Serializable[] row) throws IOException {
        TableMapEventData d = tables.get(table);
        StringBuilder s = new StringBuilder(at + " " + what);
        int column = included.nextSetBit(0);
        for (Serializable v : row) {
            s.append(' ').append(column).append('=').append(value(d, column, v));
            column = included.nextSetBit(column + 1);
        }
        out.println(s);
    }

    private static String value(TableMapEventData d, int column, Serializable v) throws IOException {
        if (v == null) {
            return "null";
        }
        int type = typeOf(d, column);
        boolean unsigned = d.getEventMetadata().getSignedness() != null && d.getEventMetadata().getSignedness().get(column);
        switch (ColumnType.byCode(type)) {
            case TINY:
                return "i" + (unsigned ? (Integer) v & 0xff : (Integer) v);
            case SHORT:
                return "i" + (unsigned ? (Integer) v & 0xffff : (Integer) v);
            case INT24:
                return "i" + (unsigned ? (Integer) v & 0xffffff : (Integer) v);
            case LONG:
                return "i" + (unsigned ? (Integer) v & 0xffffffffL : (long) (Integer) v);
            case LONGLONG:
                return "i" + (unsigned ? Long.toUnsignedString((Long) v) : Long.toString((Long) v));
            case NEWDECIMAL:
                return "n" + ((BigDecimal) v).toPlainString();
            case FLOAT:
                return String.format("f%08x", Float.floatToRawIntBits((Float) v));
            case DOUBLE:
                return String.format("d%016x", Double.doubleToRawLongBits((Double) v));
            case BIT: {
                BigInteger n = BigInteger.ZERO;
                BitSet bits = (BitSet) v;
                for (int i = bits.nextSetBit(0); i >= 0; i = bits.nextSetBit(i + 1)) {
                    n = n.setBit(i);
                }
                return "b" + n;
            }
            case YEAR:
                return "y" + v;
            case DATE: case TIME_V2: case DATETIME_V2: case TIMESTAMP_V2:
                return (Long) v == Long.MIN_VALUE ? "Tinvalid" : "T" + v;
            case ENUM:
                return "e" + v;
            case SET:
                return "s" + Long.toUnsignedString((Long) v);
            case JSON:
                return "j" + JsonBinary.parseAsString((byte[]) v).replace(" ", "\\u0020");
            default: {
                StringBuilder s = new StringBuilder("x");
                for (byte b : (byte[]) v) {
                    s.append(Character.forDigit(b >> 4 & 15, 16)).append(Character.forDigit(b & 15, 16));
                }
                return s.toString();
            }
        }
    }
}
