package log

// TailSize is the length in bytes of the file that entries are appended to, without
// preallocated space.
func (l *Log) TailSize() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.tail.offset
}
