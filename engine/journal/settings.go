package journal

// The settings of a store. A setting never changes once it is set.
const (
	// SettingKey holds the id of the key with which the engines of this store seal data.
	SettingKey = "key"
	// SettingHistory holds the first run whose journal rows must all be tagged (decision
	// 0020). The value is sealed.
	SettingHistory = "history"
)
