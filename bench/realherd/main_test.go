package realherd_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/redial-go/redial/bench/realherd"
)

func TestMain(m *testing.M) {
	if realherd.IsServer() {
		os.Exit(realherd.ServerMain())
	}
	goleak.VerifyTestMain(m)
}
