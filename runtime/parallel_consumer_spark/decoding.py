"""Values become columns, by a schema that the application gives. What does not fit the schema is an error, unless nulls are asked for.

Keeps: a tombstone stays null, and a malformed value is never taken for one silently.
"""

import json
from typing import TYPE_CHECKING, Literal

from parallel_consumer_spark.errors import WindowError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

Malformed = Literal["Fail", "Null"]
_MODES = {"Fail": "FAILFAST", "Null": "PERMISSIVE"}
_FRAME_BYTES = 5
"""The Confluent serializers' magic zero and the schema's number."""


def with_json(
    records: "DataFrame",
    schema: "StructType | str",
    *,
    column: str = "value",
    into: str = "record",
    malformed: Malformed = "Fail",
) -> "DataFrame":
    """Add a struct column read from JSON text.

    Args:
        records: with a binary or text column.
        schema: Spark's, as a type or as DDL (`route STRING, delay DOUBLE`).
        column: where the JSON is.
        into: the new column.
        malformed: Fail ends the job at a value that does not fit; Null makes it null.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - Spark's own alias; loaded where a job runs

    return records.withColumn(into, F.from_json(F.col(column).cast("string"), schema, {"mode": _MODES[malformed]}))


def with_avro(
    records: "DataFrame",
    schema: str,
    *,
    column: str = "value",
    into: str = "record",
    malformed: Malformed = "Fail",
    framed: bool = False,
) -> "DataFrame":
    """Add a column read from Avro's binary form, by Spark's own reader (the jar spark-avro).

    Args:
        records: with a binary column.
        schema: Avro's, as JSON: the one that the values were written with.
        column: where the bytes are.
        into: the new column.
        malformed: as in `with_json`.
        framed: the values begin with the five bytes of Confluent's serializers; the number in them is not looked up.

    Raises:
        WindowError: the schema is no JSON.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - as above
    from pyspark.sql.avro.functions import from_avro  # noqa: PLC0415 - as above

    try:
        json.loads(schema)
    except ValueError as error:
        raise WindowError(f"the Avro schema is no JSON: {error}") from error
    bytes_ = F.expr(f"substring(`{column}`, {_FRAME_BYTES + 1})") if framed else F.col(column)
    return records.withColumn(into, from_avro(bytes_, schema, {"mode": _MODES[malformed]}))
