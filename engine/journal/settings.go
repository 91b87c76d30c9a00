package journal

// The settings of a store. A setting never changes once it is set.
const (
	SettingKey     = "key"     // id of the key that seals what the store holds
	SettingHistory = "history" // the first run whose journal rows must all be tagged (decision 0020)
)
