package reconnect_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// Promise 11, for every test of the package.
func TestMain(m *testing.M) {
	if os.Getenv(peerEnv) != "" {
		servePeer()
		return
	}
	goleak.VerifyTestMain(m)
}
