package reconnect_test

import (
	"testing"

	"go.uber.org/goleak"
)

// Promise 11, for every test of the package.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
