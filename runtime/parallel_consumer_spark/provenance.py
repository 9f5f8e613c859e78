"""Which record a result or a dead letter was made of, from its headers; and each of them once.

At least once means that a result may be in the log twice. Both copies name the same topic, partition, offset and index.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

RESULT_PREFIX = "parallel-consumer-result-"
DEAD_LETTER_PREFIX = "parallel-consumer-dead-letter-"
REDRIVE_COUNT = "parallel-consumer-redrive-count"
"""How often a record was put back into its source topic, from 1."""
SOURCE_COLUMNS = ("source_topic", "source_partition", "source_offset", "source_index")


def header(name: str, headers: "str | Column" = "headers") -> "Column":
    """Return the last header of a name as text; null when there is none."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - Spark's own alias; loaded where a job runs

    named = F.filter(headers, lambda one: one["key"] == name)
    return F.try_element_at(named, F.lit(-1))["value"].cast("string")


def told(name: str) -> "Column":
    """Return what the runtime wrote into a result's header of this name, or into a dead letter's."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - as above

    return F.coalesce(header(RESULT_PREFIX + name), header(DEAD_LETTER_PREFIX + name))


def with_provenance(records: "DataFrame") -> "DataFrame":
    """Add the columns `SOURCE_COLUMNS`: null for records that no consumer of ours produced."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - as above

    # A dead letter is the only one of its record.
    index = F.when(header(RESULT_PREFIX + "topic").isNull(), F.lit("0")).otherwise(header(RESULT_PREFIX + "index"))
    topic = told("topic")
    return records.withColumns(
        {
            "source_topic": topic,
            "source_partition": told("partition").try_cast("int"),
            "source_offset": told("offset").try_cast("bigint"),
            "source_index": F.when(topic.isNotNull(), index.try_cast("int")),
        }
    )


def deduplicated(records: "DataFrame") -> "DataFrame":
    """Keep one record of each source topic, partition, offset and index: the first by its own partition and offset.

    Works on what `read` returns and on what was archived of several windows. Records without provenance are all kept.
    """
    from pyspark.sql import Window as Over  # noqa: PLC0415 - as above
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - as above

    known = records if set(SOURCE_COLUMNS) <= set(records.columns) else with_provenance(records)
    foreign = F.greatest(*(F.col(name).isNull().cast("int") for name in SOURCE_COLUMNS)) == 1
    # What names no source is its own: by its place in the log.
    place = F.when(foreign, F.struct("partition", "offset"))
    same = Over.partitionBy("topic", *SOURCE_COLUMNS, place).orderBy("partition", "offset")
    return known.withColumn("_turn", F.row_number().over(same)).where("_turn = 1").drop("_turn")
