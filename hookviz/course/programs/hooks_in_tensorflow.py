import tensorflow as tf

for kind in (tf.Tensor, tf.Variable, tf.Module, tf.keras.layers.Layer):
    methods = [name for name in dir(kind) if name.startswith("register") and "hook" in name]
    print(kind.__name__, methods)

for name in ("SessionRunHook", "LoggingTensorHook"):
    print(name, hasattr(tf.compat.v1.train, name))
