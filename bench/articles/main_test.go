package articles

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/redial-go/redial/bench/herd"
	"github.com/redial-go/redial/bench/internal/cli"
)

func TestMain(m *testing.M) { herd.ServeChild(); goleak.VerifyTestMain(m) }

// program has the commands of this package.
var program = cli.Program{Name: "bench", Commands: append(Commands(), cli.Sim(Models()))}

// bench runs the program.
func bench(args ...string) (out, errs string, code int) {
	return program.Try(context.Background(), args...)
}
