package adminapi

import (
	"testing"

	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
)

// Each state of a large transaction has one in the contract, and the other way round.
func TestLargeStates(t *testing.T) {
	told := map[triremev1.AdminLargeTransactionState]bool{triremev1.AdminLargeTransactionState_ADMIN_LARGE_TRANSACTION_STATE_UNSPECIFIED: true}
	for state, in := range largeStates {
		if told[in] {
			t.Errorf("%s is %v, and so is another state", state, in)
		}
		told[in] = true
	}
	for n, name := range triremev1.AdminLargeTransactionState_name {
		if !told[triremev1.AdminLargeTransactionState(n)] {
			t.Errorf("no state is %s", name)
		}
	}
}
