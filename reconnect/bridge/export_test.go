package bridge

// Visits returns how many streams the Bridge has visited in its list and its queue.
func (b *Bridge[K, T]) Visits() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.visits + b.fetches.queue.visits
}

// Options returns the options of b with their defaults.
func (b *Bridge[K, T]) Options() Options[K, T] { return b.o }
