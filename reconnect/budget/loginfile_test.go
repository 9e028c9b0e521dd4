package budget_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/budget"
)

// savedLogins returns a file with three logins, and what is in it.
func savedLogins(t *testing.T) (file budget.LoginFile, times []time.Time, data []byte) {
	t.Helper()
	file = budget.LoginFile(filepath.Join(t.TempDir(), "logins"))
	at := time.Unix(1_800_000_000, 123)
	times = []time.Time{at, at.Add(time.Minute), at.Add(time.Hour)}
	require.NoError(t, file.Save(times))
	data, err := os.ReadFile(string(file))
	require.NoError(t, err)
	return file, times, data
}

func TestALoginFileKeepsTheTimes(t *testing.T) {
	file, times, _ := savedLogins(t)
	got, err := file.Load()
	require.NoError(t, err)
	require.Equal(t, times, got)
	require.NoError(t, file.Save(nil))
	got, err = file.Load()
	require.NoError(t, err)
	require.Empty(t, got)
	entries, err := os.ReadDir(filepath.Dir(string(file)))
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing is left beside it")
	if runtime.GOOS != "windows" {
		info, err := entries[0].Info()
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode())
	}
}

func TestALoginFileThatDoesNotExistIsEmpty(t *testing.T) {
	times, err := budget.LoginFile(filepath.Join(t.TempDir(), "logins")).Load()
	require.NoError(t, err)
	require.Empty(t, times)
}

func TestALoginFileThatCannotBeReadIsAnError(t *testing.T) {
	directory := budget.LoginFile(t.TempDir())
	_, err := directory.Load()
	require.Error(t, err)
	require.NotErrorIs(t, err, budget.ErrDamaged)
	require.Error(t, directory.Save(nil))
	require.Error(t, budget.LoginFile(filepath.Join(string(directory), "none", "logins")).Save(nil))
}

func TestEachDamagedBitOfALoginFileIsSeen(t *testing.T) {
	file, times, data := savedLogins(t)
	for i := range data {
		for bit := range 8 {
			data[i] ^= 1 << bit
			require.NoError(t, os.WriteFile(string(file), data, 0o600))
			got, err := file.Load()
			require.ErrorIs(t, err, budget.ErrDamaged, "byte %d, bit %d", i, bit)
			require.ErrorContains(t, err, string(file))
			require.GreaterOrEqual(t, len(got), 1)
			require.Subset(t, times, got, "byte %d, bit %d", i, bit)
			data[i] ^= 1 << bit
			if bit > 0 {
				continue // the file is mended and written to the disk below
			}
			l, err := budget.NewLogins(&budget.LoginsOptions{
				Windows: []budget.Window{{N: 9, Per: 240 * time.Hour}, {N: 2, Per: time.Hour}},
				Store:   file, Now: func() time.Time { return times[2] },
			})
			require.NoError(t, err)
			require.Zero(t, l.Free(), "byte %d, bit %d", i, bit)
			require.ErrorIs(t, l.Damage(), budget.ErrDamaged)
		}
	}
}

func TestALoginFileThatWasCutIsSeen(t *testing.T) {
	file, times, data := savedLogins(t)
	for n := range data {
		require.NoError(t, os.WriteFile(string(file), data[:n], 0o600))
		got, err := file.Load()
		require.ErrorIs(t, err, budget.ErrDamaged, "%d bytes", n)
		require.Subset(t, append(times, time.Time{}), append(got, time.Time{}), "%d bytes", n)
	}
	require.NoError(t, os.WriteFile(string(file), append(data, '\n'), 0o600))
	_, err := file.Load()
	require.ErrorIs(t, err, budget.ErrDamaged)
}

// A process that is killed while it saves leaves the file beside the record, whole or not.
func TestAFileBesideALoginFileIsNotRead(t *testing.T) {
	file, times, data := savedLogins(t)
	require.NoError(t, os.WriteFile(string(file)+".new", data[:len(data)/2], 0o600))
	got, err := file.Load()
	require.NoError(t, err)
	require.Equal(t, times, got)
	require.NoError(t, file.Save(times[:1]))
	got, err = file.Load()
	require.NoError(t, err)
	require.Equal(t, times[:1], got)
}
