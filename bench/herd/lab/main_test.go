package lab_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/redial-go/redial/bench/herd/lab"
)

func TestMain(m *testing.M) {
	if lab.IsServer() {
		os.Exit(lab.ServerMain())
	}
	goleak.VerifyTestMain(m)
}
