//! Prints what is in a binlog file, see ../README.md.

use std::env;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};

use mysql_common::binlog::consts::{BinlogChecksumAlg, BinlogVersion};
use mysql_common::binlog::events::{
    Event, EventData, OptionalMetaExtractor, OptionalMetadataField, RowsEventData, TableMapEvent,
};
use mysql_common::binlog::jsonb::{JsonContainer, JsonDom, JsonNumber, JsonScalar};
use mysql_common::binlog::row::BinlogRow;
use mysql_common::binlog::value::BinlogValue;
use mysql_common::binlog::BinlogFile;
use mysql_common::constants::{ColumnFlags, ColumnType};
use mysql_common::value::Value;

fn main() -> io::Result<()> {
    let path = env::args().nth(1).expect("usage: binlogdecode FILE");
    let mut file = BinlogFile::new(BinlogVersion::Version4, BufReader::new(File::open(path)?))?;
    let mut out = BufWriter::new(io::stdout().lock());
    while let Some(event) = file.next() {
        let event = event?;
        check_sum(&event)?;
        write!(out, "{} ", event.header().log_pos())?;
        print(&mut out, &file, &event)?;
    }
    out.flush()
}

fn bad(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

fn check_sum(event: &Event) -> io::Result<()> {
    let Some(stored) = event.checksum() else {
        return Ok(());
    };
    let computed = event.calc_checksum(BinlogChecksumAlg::BINLOG_CHECKSUM_ALG_CRC32);
    if u32::from_le_bytes(stored) != computed {
        return Err(bad(format!("checksum of the event that ends at {}", event.header().log_pos())));
    }
    Ok(())
}

fn uuid(u: &[u8; 16]) -> String {
    let hex: String = u.iter().map(|b| format!("{b:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

fn print<R: io::BufRead>(out: &mut impl Write, file: &BinlogFile<R>, event: &Event) -> io::Result<()> {
    let at = event.header().log_pos();
    let Some(data) = event.read_data()? else {
        return writeln!(out, "UNKNOWN {}", event.header().event_type_raw());
    };
    match data {
        EventData::FormatDescriptionEvent(d) => {
            let checksum = match event.footer().get_checksum_alg() {
                Ok(Some(BinlogChecksumAlg::BINLOG_CHECKSUM_ALG_CRC32)) => "CRC32",
                _ => "NONE",
            };
            writeln!(out, "FORMAT 4 {} {checksum}", d.server_version().trim_end_matches('\0'))
        }
        EventData::PreviousGtidsEvent(d) => {
            let mut sources = Vec::new();
            for s in d.sids() {
                let mut text = uuid(&s.uuid());
                for i in s.intervals() {
                    let (first, last) = (i.start(), i.end() - 1);
                    if first == last {
                        write!(text, ":{first}").unwrap();
                    } else {
                        write!(text, ":{first}-{last}").unwrap();
                    }
                }
                sources.push(text);
            }
            writeln!(out, "PREVIOUS {}", sources.join(","))
        }
        EventData::GtidEvent(d) => writeln!(
            out,
            "GTID {}:{} flags={} clock={},{} time={},{} length={} version={},{}",
            uuid(&d.sid()),
            d.gno(),
            d.flags_raw(),
            d.last_committed(),
            d.sequence_number(),
            d.immediate_commit_timestamp(),
            d.original_commit_timestamp(),
            d.tx_length(),
            d.immediate_server_version(),
            d.original_server_version()
        ),
        EventData::QueryEvent(d) => {
            let mut variables = String::new();
            for v in d.status_vars().iter() {
                // The library knows that microseconds have three bytes, and then reads four: print them as they are.
                match v.get_value() {
                    Ok(v) => write!(variables, " {v:?}").unwrap(),
                    Err(raw) => write!(variables, " {raw:?}").unwrap(),
                }
            }
            writeln!(
                out,
                "QUERY schema={} thread={} seconds={} error={} text={} variables:{variables}",
                d.schema(),
                d.thread_id(),
                d.execution_time(),
                d.error_code(),
                d.query()
            )
        }
        EventData::XidEvent(d) => writeln!(out, "XID {}", d.xid),
        EventData::RotateEvent(d) => writeln!(out, "ROTATE {} {}", d.name(), d.position()),
        EventData::TableMapEvent(d) => table_map(out, at, &d),
        EventData::RowsEvent(d) => rows(out, file, at, &d),
        other => writeln!(out, "{other:?}"),
    }
}

fn number(t: ColumnType) -> u8 {
    t as u8
}

fn table_map(out: &mut impl Write, at: u32, d: &TableMapEvent<'_>) -> io::Result<()> {
    let columns = d.columns_count() as usize;
    writeln!(out, "TABLE {} {}.{} {columns}", d.table_id(), d.database_name(), d.table_name())?;
    let (mut visible, mut enums, mut sets, mut keys) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for field in d.iter_optional_meta() {
        match field? {
            OptionalMetadataField::ColumnVisibility(v) => visible = v.iter().by_vals().collect(),
            OptionalMetadataField::EnumStrValue(v) => {
                for e in v.iter_values() {
                    let e = e?;
                    enums.push(e.values().iter().map(|m| m.value().into_owned()).collect::<Vec<_>>().join("|"));
                }
            }
            OptionalMetadataField::SetStrValue(v) => {
                for s in v.iter_values() {
                    let s = s?;
                    sets.push(s.values().iter().map(|m| m.value().into_owned()).collect::<Vec<_>>().join("|"));
                }
            }
            OptionalMetadataField::SimplePrimaryKey(v) => {
                for i in v.iter_indexes() {
                    keys.push((i?, 0));
                }
            }
            OptionalMetadataField::PrimaryKeyWithPrefix(v) => {
                for k in v.iter_keys() {
                    let k = k?;
                    keys.push((k.column_index(), k.prefix_length()));
                }
            }
            _ => {}
        }
    }
    let meta = OptionalMetaExtractor::new(d.iter_optional_meta())?;
    let mut unsigned = meta.iter_signedness();
    let mut charsets = meta.iter_charset();
    let mut member_charsets = meta.iter_enum_and_set_charset();
    let mut names = meta.iter_column_name();
    let (mut enums, mut sets) = (enums.into_iter(), sets.into_iter());
    for i in 0..columns {
        let t = d.get_column_type(i).map_err(|e| bad(e.to_string()))?.ok_or_else(|| bad(format!("column {i}")))?;
        // The library calls DATE by the name of its newer form.
        let code = if t == ColumnType::MYSQL_TYPE_NEWDATE { 10 } else { number(t) };
        let mut s = format!("{at} column {i} type={code} null={}", d.null_bitmask()[i] as u8);
        if t.is_numeric_type() {
            write!(s, " unsigned={}", unsigned.next().ok_or_else(|| bad("signedness".into()))? as u8).unwrap();
        } else if t.is_character_type() {
            write!(s, " charset={}", charsets.next().ok_or_else(|| bad("charset".into()))??).unwrap();
        }
        if let Some(name) = names.next() {
            if t.is_enum_or_set_type() {
                write!(s, " charset={}", member_charsets.next().ok_or_else(|| bad("charset".into()))??).unwrap();
                let members = if t == ColumnType::MYSQL_TYPE_ENUM { enums.next() } else { sets.next() };
                write!(s, " members={}", members.ok_or_else(|| bad("members".into()))?).unwrap();
            }
            write!(s, " name={} visible={}", name?.name(), visible[i] as u8).unwrap();
            if let Some((_, prefix)) = keys.iter().find(|k| k.0 == i as u64) {
                write!(s, " key={prefix}").unwrap();
            }
        }
        writeln!(out, "{s}")?;
    }
    Ok(())
}

fn rows<R: io::BufRead>(out: &mut impl Write, file: &BinlogFile<R>, at: u32, d: &RowsEventData<'_>) -> io::Result<()> {
    let what = match d {
        RowsEventData::WriteRowsEvent(_) => "WRITE",
        RowsEventData::UpdateRowsEvent(_) => "UPDATE",
        RowsEventData::DeleteRowsEvent(_) => "DELETE",
        _ => return Err(bad("rows event of another version".into())),
    };
    writeln!(out, "{what} {}", d.table_id())?;
    let map = file.reader().get_tme(d.table_id()).ok_or_else(|| bad(format!("no table map {}", d.table_id())))?;
    let included = |bits: Option<Vec<bool>>| -> Vec<usize> {
        bits.unwrap_or_default().iter().enumerate().filter(|(_, b)| **b).map(|(i, _)| i).collect()
    };
    let before = included(d.columns_before_image().map(|b| b.iter().by_vals().collect()));
    let after = included(d.columns_after_image().map(|b| b.iter().by_vals().collect()));
    for row in d.rows(map) {
        let (b, a) = row?;
        let both = b.is_some() && a.is_some();
        if let Some(b) = b {
            image(out, at, if both { "before" } else { "row" }, &before, b)?;
        }
        if let Some(a) = a {
            image(out, at, if both { "after" } else { "row" }, &after, a)?;
        }
    }
    Ok(())
}

fn image(out: &mut impl Write, at: u32, what: &str, included: &[usize], row: BinlogRow) -> io::Result<()> {
    let columns = row.columns();
    let mut s = format!("{at} {what}");
    for (i, v) in row.unwrap().into_iter().enumerate() {
        write!(s, " {}=", included[i]).unwrap();
        let unsigned = columns[i].flags().contains(ColumnFlags::UNSIGNED_FLAG);
        value(&mut s, columns[i].column_type(), unsigned, v)?;
    }
    writeln!(out, "{s}")
}

fn text(b: &[u8]) -> io::Result<&str> {
    std::str::from_utf8(b).map_err(|e| bad(e.to_string()))
}

fn value(s: &mut String, t: ColumnType, unsigned: bool, v: BinlogValue<'_>) -> io::Result<()> {
    let v = match v {
        BinlogValue::Value(v) => v,
        BinlogValue::Jsonb(doc) => {
            s.push('j');
            return json(s, doc.parse()?);
        }
        BinlogValue::JsonDiff(_) => return Err(bad("partial JSON".into())),
    };
    match (t, v) {
        (_, Value::NULL) => s.push_str("null"),
        (ColumnType::MYSQL_TYPE_ENUM, Value::Int(n)) => write!(s, "e{n}").unwrap(),
        (ColumnType::MYSQL_TYPE_SET, Value::Bytes(b)) => {
            let n = b.iter().rev().fold(0u64, |n, x| n << 8 | *x as u64);
            write!(s, "s{n}").unwrap();
        }
        (ColumnType::MYSQL_TYPE_BIT, Value::Bytes(b)) => {
            let n = b.iter().fold(0u64, |n, x| n << 8 | *x as u64);
            write!(s, "b{n}").unwrap();
        }
        (ColumnType::MYSQL_TYPE_NEWDECIMAL, Value::Bytes(b)) => write!(s, "n{}", text(&b)?).unwrap(),
        (ColumnType::MYSQL_TYPE_YEAR, Value::Bytes(b)) => write!(s, "y{}", text(&b)?).unwrap(),
        (ColumnType::MYSQL_TYPE_TIMESTAMP2, Value::Bytes(b)) => write!(s, "T{}", text(&b)?).unwrap(),
        // The library does not extend the sign of three bytes.
        (ColumnType::MYSQL_TYPE_INT24, Value::Int(n)) if !unsigned => write!(s, "i{}", (n as i32) << 8 >> 8).unwrap(),
        (_, Value::Int(n)) if unsigned && n < 0 => return Err(bad(format!("unsigned {n}"))),
        (_, Value::Int(n)) => write!(s, "i{n}").unwrap(),
        (_, Value::UInt(n)) => write!(s, "i{n}").unwrap(),
        (_, Value::Float(f)) => write!(s, "f{:08x}", f.to_bits()).unwrap(),
        (_, Value::Double(f)) => write!(s, "d{:016x}", f.to_bits()).unwrap(),
        (_, Value::Date(y, mo, d, h, mi, sec, us)) => {
            write!(s, "T{y:04}-{mo:02}-{d:02}_{h:02}:{mi:02}:{sec:02}.{us:06}").unwrap()
        }
        (_, Value::Time(neg, d, h, mi, sec, us)) => {
            let sign = if neg { "-" } else { "" };
            write!(s, "T{sign}{:02}:{mi:02}:{sec:02}.{us:06}", d * 24 + h as u32).unwrap()
        }
        (_, Value::Bytes(b)) => {
            s.push('x');
            for x in b {
                write!(s, "{x:02x}").unwrap();
            }
        }
    }
    Ok(())
}

/// Escapes as JSON does, and spaces too, which separate values.
fn quoted(s: &mut String, text: &str) {
    s.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                s.push('\\');
                s.push(c);
            }
            c if c <= ' ' => write!(s, "\\u{:04x}", c as u32).unwrap(),
            c => s.push(c),
        }
    }
    s.push('"');
}

fn json(s: &mut String, doc: JsonDom) -> io::Result<()> {
    match doc {
        JsonDom::Container(JsonContainer::Array(elements)) => {
            s.push('[');
            for (i, e) in elements.into_iter().enumerate() {
                if i > 0 {
                    s.push(',');
                }
                json(s, e)?;
            }
            s.push(']');
        }
        JsonDom::Container(JsonContainer::Object(members)) => {
            s.push('{');
            for (i, (k, e)) in members.into_iter().enumerate() {
                if i > 0 {
                    s.push(',');
                }
                quoted(s, &k);
                s.push(':');
                json(s, e)?;
            }
            s.push('}');
        }
        JsonDom::Scalar(v) => match v {
            JsonScalar::Null => s.push_str("null"),
            JsonScalar::Boolean(b) => write!(s, "{b}").unwrap(),
            JsonScalar::String(t) => quoted(s, &t),
            JsonScalar::DateTime(t) => quoted(s, &format!("{t:.6}")),
            JsonScalar::Opaque(o) => quoted(s, &o.to_string()),
            JsonScalar::Number(JsonNumber::Int(n)) => write!(s, "{n}").unwrap(),
            JsonScalar::Number(JsonNumber::Uint(n)) => write!(s, "{n}").unwrap(),
            JsonScalar::Number(JsonNumber::Double(f)) => write!(s, "{f:e}").unwrap(),
            JsonScalar::Number(JsonNumber::Decimal(d)) => write!(s, "{d}").unwrap(),
        },
    }
    Ok(())
}
