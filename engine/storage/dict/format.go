package dict

import (
	"fmt"

	"github.com/triremedb/trireme/engine/storage/trx"
)

// CheckFormat looks at the system page as it is on disk. The error is [ErrFormat].
func CheckFormat(systemPage []byte) error {
	if f := trx.SlotOf(systemPage, slotFormat); f > formatVersion {
		return fmt.Errorf("%w: format %d, known are 1 to %d", ErrFormat, f, formatVersion)
	}
	return nil
}
