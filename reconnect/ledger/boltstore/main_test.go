package boltstore_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
	"go.uber.org/goleak"
)

// With roleEnv set, the test binary is a program of the kill test, the survey or a history instead.
func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "client":
		exit(runClient())
	case "server":
		exit(runServer())
	case "surveyor":
		exit(runSurveyor())
	case "history":
		exit(runHistoryStore(os.Args[1]))
	}
	goleak.VerifyTestMain(m)
}

// openDB opens a database in the directory of a test, which closes it.
func openDB(t *testing.T, name string) *bolt.DB {
	t.Helper()
	db, err := bolt.Open(filepath.Join(t.TempDir(), name), 0o600, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}
