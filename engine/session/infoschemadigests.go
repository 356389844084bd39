package session

import (
	"time"
)

const digestTable = "events_statements_summary_by_digest"

const digestColumns = "SCHEMA_NAME name, DIGEST varchar(64), DIGEST_TEXT longtext, COUNT_STAR bigint unsigned, SUM_TIMER_WAIT bigint unsigned, MIN_TIMER_WAIT bigint unsigned, " +
	"AVG_TIMER_WAIT bigint unsigned, MAX_TIMER_WAIT bigint unsigned, SUM_LOCK_TIME bigint unsigned, SUM_ERRORS bigint unsigned, SUM_WARNINGS bigint unsigned, " +
	"SUM_ROWS_AFFECTED bigint unsigned, SUM_ROWS_SENT bigint unsigned, SUM_ROWS_EXAMINED bigint unsigned, SUM_CREATED_TMP_DISK_TABLES bigint unsigned, " +
	"SUM_CREATED_TMP_TABLES bigint unsigned, SUM_SELECT_FULL_JOIN bigint unsigned, SUM_SELECT_FULL_RANGE_JOIN bigint unsigned, SUM_SELECT_RANGE bigint unsigned, " +
	"SUM_SELECT_RANGE_CHECK bigint unsigned, SUM_SELECT_SCAN bigint unsigned, SUM_SORT_MERGE_PASSES bigint unsigned, SUM_SORT_RANGE bigint unsigned, " +
	"SUM_SORT_ROWS bigint unsigned, SUM_SORT_SCAN bigint unsigned, SUM_NO_INDEX_USED bigint unsigned, SUM_NO_GOOD_INDEX_USED bigint unsigned, SUM_CPU_TIME bigint unsigned, " +
	"MAX_CONTROLLED_MEMORY bigint unsigned, MAX_TOTAL_MEMORY bigint unsigned, COUNT_SECONDARY bigint unsigned, FIRST_SEEN timestamp(6) null, LAST_SEEN timestamp(6) null, " +
	"QUANTILE_95 bigint unsigned, QUANTILE_99 bigint unsigned, QUANTILE_999 bigint unsigned, QUERY_SAMPLE_TEXT longtext, QUERY_SAMPLE_SEEN timestamp(6) null, " +
	"QUERY_SAMPLE_TIMER_WAIT bigint unsigned"

// picoseconds is the unit of timers.
func picoseconds(d time.Duration) uint64 { return uint64(max(d, 0)) * 1000 }

// rowsDigests lists statements by their digests. What is not measured is 0; samples, which might
// tell secrets, are NULL. Error: 1142.
func rowsDigests(q *virtualRows) error {
	if err := q.mayWatch(digestTable); err != nil {
		return err
	}
	for _, d := range q.s.m.Statements() {
		q.row(orNull(d.Schema), orNull(d.ID), orNull(d.Text), d.Count, picoseconds(d.TotalTime), picoseconds(d.LeastTime), picoseconds(d.TotalTime)/d.Count,
			picoseconds(d.LongestTime), 0, d.Errors, d.Warnings, d.RowsAffected, d.RowsSent, d.RowsRead, 0, 0, 0, 0, 0, 0, d.Scans, 0, 0, 0, 0, d.Scans, 0, 0, 0, 0, 0,
			d.FirstSeen, d.LastSeen, 0, 0, 0, nil, nil, 0)
	}
	return nil
}
