package scene

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
)

func TestFormsAreWhatTheySay(t *testing.T) {
	InEachForm(t, func(t *testing.T, s *Scene) {
		s.Fake = Alive
		c, _ := s.Ready(nil)
		require.Equal(t, reconnect.StateReady, c.State())
		require.Equal(t, s.Form.Rotations+1, s.Session)
		require.Equal(t, s.Session, c.Status().Session)
		require.Equal(t, s.Form.drains, c.Status().Rotating)
		WantNothing(t, c)
		time.Sleep(time.Minute)
		require.Equal(t, s.Session, c.Status().Session)
		require.Equal(t, s.Form.Rotations, c.Stats().Rotations)
	})
	InEachForm(t, func(t *testing.T, s *Scene) {
		c, d := s.Down(nil)
		require.Equal(t, reconnect.StateConnecting, c.State())
		WantNothing(t, c)
		d.Accept()
		require.Equal(t, reconnect.StateReady, c.State())
		require.Equal(t, s.Session, c.Status().Session)
	})
}

// formFiles are the files whose tests run in forms, unless formless lists them: the tests of dials, hung
// handshakes, kick, gate, liveness and its patience, logins, pace, Write and Send. The tests of age are in
// rotate/rotation_test.go, most of whose tests make their own rotations.
var formFiles = []string{
	"gate/dial_test.go", "gate/dialing_test.go", "gate/gate_test.go", "gate/logins_reserved_test.go",
	"gate/logins_test.go", "live/check_test.go", "live/liveness_test.go", "live/patience_test.go",
	"live/probe_test.go", "run/run_test.go", "send/keepalive_test.go", "send/pace_test.go",
	"send/queue_test.go", "send/send_test.go", "send/sender_test.go", "send/session_test.go",
}

// Reasons of formless.
const (
	bareRun      = "a bare Run has no rotations"
	firstDial    = "the first dial of a Conn has no form"
	notOpened    = "no Conn is opened"
	severalConns = "many Conns compete with each other"
)

// formless maps each test of formFiles that runs in no form to the reason.
var formless = map[string]string{
	// gate/dial_test.go
	"TestAHookThatDoesNotReturnLeavesNoConnection":  bareRun,
	"TestAHookThatPanicsGivesThePlaceAtTheGateBack": bareRun,
	"TestRunClosesWhatALateDialBringsBack":          bareRun,

	// gate/dialing_test.go
	"TestClientsConnectThoughMostBackendsHang": severalConns,
	"TestManyThatStartAtOneInstantAreSpread":   firstDial,

	// send/keepalive_test.go, send/pace_test.go, send/send_test.go
	"TestHalfAKeepAliveIsRefused":         notOpened,
	"TestPaceIsRefusedByName":             notOpened,
	"TestTheErrorOfUnsentMessagesIsClear": notOpened,

	// gate/logins_test.go
	"TestABudgetOfLoginsHoldsForAWeekOfFlapping": "each Conn ends with its process, and another one follows",
	"TestALoginThatARunIsRefusedIsWaitedFor":     bareRun,
	"TestARunAsksItsSessionForALogin":            bareRun,
	"TestTheFirstDialWaitsForALogin":             firstDial,
	"TestThreeConnsShareABudget":                 severalConns,

	// gate/logins_reserved_test.go
	"TestACallbackThatExitsLeavesNoReservation":    bareRun,
	"TestALoginThatTheDialFunctionTakesCountsOnce": bareRun,
	"TestThoseThatWouldGetNoLoginDoNotDial":        severalConns,

	// gate/gate_test.go
	"TestALostConnectionOfARunCountsAgainstTheHost": bareRun,

	// run/run_test.go
	"TestAClosedKickKicksNobody":                     bareRun,
	"TestAKickThatWasSentBeforeTheDialIsForgotten":   bareRun,
	"TestANilFromServeIsRedialed":                    bareRun,
	"TestAServeThatDoesNotReturnLeavesNothingBehind": bareRun,
	"TestRunClosesAConnectionBeforeTheNextDial":      bareRun,
	"TestRunWaitsForTheCloseThatItsContextStarted":   bareRun,
	"TestTheKickOfARunCutsItsWait":                   bareRun,
}

func TestFormlessIsComplete(t *testing.T) {
	found := map[string]bool{}
	for _, name := range formFiles {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", name), nil, 0)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			found[f.Name.Name] = true
			_, excepted := formless[f.Name.Name]
			const want = "%s must call scene.InEachForm, or be in formless"
			require.NotEqual(t, excepted, callsForms(f), want, f.Name.Name)
		}
	}
	for name := range formless {
		require.True(t, found[name], "%s is in formless, but in no file of formFiles", name)
	}
}

// callsForms reports whether f calls InEachForm, InEachWSForm or InEachFramedForm.
func callsForms(f *ast.FuncDecl) bool {
	calls := false
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if f, ok := call.Fun.(*ast.SelectorExpr); ok {
				switch f.Sel.Name {
				case "InEachForm", "InEachWSForm", "InEachFramedForm":
					calls = true
				}
			}
		}
		return true
	})
	return calls
}
