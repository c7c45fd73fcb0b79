//! Calls as a Parquet file, written column by column without Arrow: the table is flat and small.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};
use proctor_traces::Trace;
use proctor_traces::export::{COLUMNS, Cell, ColumnKind, row};

/// All calls of some traces, each with its label, as one row group.
pub(super) fn to_parquet<'a>(
    traces: impl Iterator<Item = (&'a str, &'a Trace)>,
) -> Result<Vec<u8>, ParquetError> {
    let rows: Vec<_> =
        traces.flat_map(|(label, trace)| trace.calls.iter().map(move |call| row(label, call))).collect();
    let mut bytes = Vec::new();
    let mut file =
        SerializedFileWriter::new(&mut bytes, schema()?, Arc::new(WriterProperties::builder().build()))?;
    let mut group = file.next_row_group()?;
    let mut index = 0;
    while let Some(mut column) = group.next_column()? {
        let cells: Vec<&Cell<'_>> = rows.iter().filter_map(|row| row.get(index)).collect();
        let levels: Vec<i16> = cells.iter().map(|cell| i16::from(!is_empty(cell))).collect();
        match COLUMNS[index].kind {
            ColumnKind::Text => {
                let values: Vec<ByteArray> = cells.iter().filter_map(|cell| text(cell)).collect();
                column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
            }
            ColumnKind::Int => {
                let values: Vec<i64> = cells.iter().filter_map(|cell| number(cell)).collect();
                column.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
            }
            ColumnKind::Bool => {
                let values: Vec<bool> = cells.iter().map(|cell| matches!(cell, Cell::Bool(true))).collect();
                column.typed::<BoolType>().write_batch(&values, Some(&levels), None)?;
            }
        }
        column.close()?;
        index += 1;
    }
    group.close()?;
    file.close()?;
    Ok(bytes)
}

fn schema() -> Result<TypePtr, ParquetError> {
    let fields = COLUMNS.iter().map(|column| {
        let (physical, logical) = match column.kind {
            ColumnKind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            ColumnKind::Int => (Physical::INT64, None),
            ColumnKind::Bool => (Physical::BOOLEAN, None),
        };
        let builder = Type::primitive_type_builder(column.name, physical);
        builder.with_repetition(Repetition::OPTIONAL).with_logical_type(logical).build().map(Arc::new)
    });
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(Type::group_type_builder("call").with_fields(fields).build()?))
}

fn is_empty(cell: &Cell<'_>) -> bool {
    matches!(cell, Cell::Text(None) | Cell::Int(None))
}

fn text(cell: &Cell<'_>) -> Option<ByteArray> {
    match cell {
        Cell::Text(Some(text)) => Some(ByteArray::from(text.as_bytes().to_vec())),
        _ => None,
    }
}

fn number(cell: &Cell<'_>) -> Option<i64> {
    match cell {
        Cell::Int(number) => *number,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::RowAccessor as _;
    use proctor_traces::{Format, sources};

    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let lines = concat!(
            r#"{"type":"turn.started"}"#,
            "\n",
            r#"{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"/bin/sh -c 'ls ü'","aggregated_output":"é\n","exit_code":0,"status":"completed"}}"#,
            "\n",
        );
        let records = sources::read(lines.as_bytes(), Some(Format::CodexExec), None).unwrap();
        let trace = Trace::of_records("stdout", records);
        let bytes = to_parquet([("one", &trace), ("two", &trace)].into_iter()).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        assert_eq!(reader.metadata().file_metadata().num_rows(), 2);
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows[1].get_string(0).unwrap(), "two");
        assert_eq!(rows[0].get_string(10).unwrap(), "ls ü");
        assert_eq!(rows[0].get_long(13).unwrap(), 0);
        assert!(rows[0].get_long(15).is_err(), "a call without times has none");
        assert!(!rows[0].get_bool(21).unwrap());
    }
}
