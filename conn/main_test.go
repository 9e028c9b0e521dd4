package conn

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(pusherVar) != "" {
		pusher()
		return
	}
	goleak.VerifyTestMain(m)
}
