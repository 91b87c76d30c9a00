package journal

// The settings of a store: what it remembers for ever, once it is known.
const (
	SettingKey     = "key"     // id of the key that seals what the store holds
	SettingHistory = "history" // from which run on every row of the journal is tagged (decision 0020)
)
